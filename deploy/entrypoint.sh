#!/bin/sh
# Starts one part of Gadget (web, worker or sweeper), or runs any command of `gadget`: up, migrate, doctor, backup FILE …
set -eu
case "${1:-up}" in
    web) exec python -m gadget_site.web ;;
    worker)
        export CELERY_SKIP_CHECKS=true  # the checks would load every page
        exec python -m celery --quiet --app gadget_site.celery worker --pool threads --hostname "worker@%h"
        ;;
    sweeper) exec gadget sweep ;;
    *) exec gadget "${@:-up}" ;;
esac
