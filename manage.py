#!/usr/bin/env python
"""Runs the commands of Gadget: `python manage.py help` lists them."""

from gadget_site.__main__ import main

if __name__ == "__main__":
    main()
