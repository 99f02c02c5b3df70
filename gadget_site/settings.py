"""Django's settings. Everything that an operator can choose is a row of settings_table.py."""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from agents.platform.file_modes import keep_new_files_private
from gadget_site import folders
from gadget_site.addresses import build_broker_url
from gadget_site.databases import build_database_settings
from gadget_site.environment import read_settings
from gadget_site.faults import SettingError
from gadget_site.garbage_collection import pause_garbage_collection
from gadget_site.logs import build_logging_settings
from gadget_site.version import VERSION

pause_garbage_collection()
keep_new_files_private()  # every process reads these settings before it creates a file
BASE_DIR: Path = folders.BASE_DIR
try:
    SITE = read_settings(os.environ, BASE_DIR)
except SettingError as error:
    sys.exit(f"Gadget cannot start. {error}")  # exit without a traceback, in every process

# The installation
GADGET_VERSION = VERSION
GADGET_DATA_DIR = SITE.data_dir
GADGET_FILES_DIR = SITE.data_dir / "files"
GADGET_SCRIPTS_DIR = folders.PACKAGE_DIR / "demo" / "scripts"
GADGET_SQLITE_FILE = Path(SITE.database.name) if SITE.database.is_sqlite else None
GADGET_CONFIG = SITE.config
GADGET_CONFIG_FILE = SITE.config_file
GADGET_ENCRYPTION_KEYS = list(SITE.encryption_keys)
GADGET_AUDIT_KEYS = list(SITE.audit_keys)
GADGET_TIMING_SCALE = SITE.timing_scale
GADGET_QUEUE = SITE.queue
GADGET_METRICS_TOKEN = SITE.metrics_token
GADGET_ONLY_LOCAL = SITE.is_only_local
GADGET_ORIGIN = SITE.origin
GADGET_LINK_BASE = SITE.link_base
GADGET_LOG_FORMAT = SITE.log_format
# Without a mail server, a page shows what would be sent. Workers switch DEBUG off, but not this.
GADGET_SHOWS_MESSAGES = SITE.debug
GADGET_ENVIRONMENT = SITE.environment_name
GADGET_TRUSTED_PROXIES = SITE.trusted_proxies
GADGET_WORKERS = SITE.workers
GADGET_WORKER_THREADS = SITE.worker_threads
GADGET_HOST = SITE.host
GADGET_PORT = SITE.port
GADGET_TOOLS = ["tools.builtin.BUILTIN_TOOLS"]
GADGET_OFFICE_PLUGINS = ["office", *(["office-demo"] if SITE.debug else [])]
GADGET_DEMO_PACE = SITE.demo_pace
HEARTBEAT_FILE = SITE.heartbeat_file
REDIS_URL = SITE.redis_url
REDIS_IS_EMBEDDED = SITE.redis_is_embedded
OPENAI_API_KEY = SITE.openai_api_key
OPENAI_BASE_URL = SITE.openai_base_url
OPENAI_MODEL = SITE.openai_model
OLLAMA_HOST = SITE.ollama_host
OLLAMA_MODEL = SITE.ollama_model

DEBUG = SITE.debug
SECRET_KEY = SITE.secret_key
ALLOWED_HOSTS = list(SITE.allowed_hosts)
ALLOWED_ORIGINS = list(SITE.allowed_origins)
ALLOWED_PRIVATE_HOSTS = SITE.allowed_private_hosts
PRIVATE_PUSH_HOSTS = SITE.private_push_hosts
CHAT_HOSTS = SITE.chat_hosts
PRIVATE_PROVIDERS = SITE.private_providers
CSRF_TRUSTED_ORIGINS = ALLOWED_ORIGINS

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "unfold.contrib.forms",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "ninja",
    "axes",
    "csp",
    "gadget_site",
    "agents",
    "agents.platform",
    "agents.accounts",
    "agents.employees",
    "agents.runs",
    "agents.approvals",
    "agents.approval_rules",
    "agents.standing_grants",
    "agents.notices",
    "agents.gateway",
    "agents.triggers",
    "agents.readers",
    "agents.webhooks",
    "agents.insight",
    "agents.policy",
    "agents.restores",
    "tools.office.records",
    "tools.schedules",
    "tools.connections",
    "tools.office",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "gadget_site.content_policy.ContentPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "agents.accounts.logins.middleware.LoginMiddleware",
    "axes.middleware.AxesMiddleware",
    "agents.web.views.unavailable.DatabaseConditionMiddleware",
]

ROOT_URLCONF = "gadget_site.urls"
ASGI_APPLICATION = "gadget_site.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES: list[dict[str, Any]] = [
    {  # the admin's pages
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [folders.ASSETS_DIR / "templates" / "django"],
        "APP_DIRS": True,
        "OPTIONS": {
            "libraries": {"admin_text": "agents.admin.template_filters"},
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
    {  # all other pages, and the lines of the activity panel
        "BACKEND": "django.template.backends.jinja2.Jinja2",
        "DIRS": [folders.ASSETS_DIR / "templates"],
        "OPTIONS": {
            "environment": "agents.web.jinja_environment.create_environment",
            "context_processors": [
                "django.contrib.messages.context_processors.messages",
                "gadget_site.demo.login.offer_demo_people",
            ],
        },
    },
]

DATABASES = {"default": build_database_settings(SITE.database, SITE.database_pool)}

# Time and language
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
USE_I18N = False

# People
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
    {"NAME": "gadget_site.demo.accounts.NotTheDemoPassword"},
]
PASSWORD_HASHERS = ["agents.accounts.logins.hashing.BoundedPasswordHasher"]
AXES_HANDLER = "agents.accounts.logins.limits.LoginLimits"
AXES_LOCKOUT_CALLABLE = "agents.accounts.logins.middleware.render_locked_page"
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_VERBOSE = False
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = SITE.served_over_https
CSRF_COOKIE_SECURE = SITE.served_over_https
SECURE_HSTS_SECONDS = 31_536_000 if SITE.served_over_https else 0
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "manifest-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    },
}

# Files for the browser, served from their folder: collectstatic is not needed
STATIC_URL = "/static/"
STATIC_ROOT = None
STATICFILES_DIRS = [folders.ASSETS_DIR / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = SITE.debug

# E-mail: notices to people
EMAIL_HOST = SITE.mail.host
EMAIL_PORT = SITE.mail.port
EMAIL_HOST_USER = SITE.mail.user
EMAIL_HOST_PASSWORD = SITE.mail.password
EMAIL_USE_SSL = SITE.mail.encryption == "ssl"
EMAIL_USE_TLS = SITE.mail.encryption == "starttls"
EMAIL_TIMEOUT = 15
DEFAULT_FROM_EMAIL = SITE.mail_sender

# Redis: messages that wake workers, and the bell that wakes browsers
CELERY_BROKER_URL = build_broker_url(SITE.redis_url)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_CHANNEL_ERROR_RETRY = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_timeout": 2.0,
    "socket_connect_timeout": 2.0,
    "socket_keepalive": True,
    "health_check_interval": 5,
    # Do not keep the sender waiting: messages that Redis does not accept immediately are sent again
    # later.
    "max_retries": 0,
    "interval_start": 0,
}
CELERY_IMPORTS = ["agents.worker.jobs"]
CELERY_TASK_DEFAULT_QUEUE = SITE.queue
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_REJECT_ON_WORKER_LOST = False
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_CONCURRENCY = SITE.worker_threads
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_TIMEZONE = TIME_ZONE

CHANNEL_LAYERS = {
    "default": {
        # Bells may be lost, so publish/subscribe is enough. It needs one Redis command for each
        # bell; the queued layer needs several.
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {
            "hosts": [
                {"address": SITE.redis_url, "socket_timeout": 2, "socket_connect_timeout": 2}
            ],
            "prefix": f"{SITE.queue}:bell",
        },
    },
}

LOGGING = build_logging_settings(SITE)
DEFAULT_EXCEPTION_REPORTER = "gadget_site.error_pages.ReporterWithoutValues"

# Shades of the accent in static/css/tokens.css; the admin uses 600 on light backgrounds and 500
# on dark ones.
ADMIN_ACCENT = {
    "50": "#f3f4fe",
    "100": "#e9ecfd",
    "200": "#d0d6fb",
    "300": "#b6c1ff",
    "400": "#9aa9ff",
    "500": "#8797fa",
    "600": "#3346c9",
    "700": "#2534a4",
    "800": "#222a4d",
    "900": "#1b2140",
    "950": "#121733",
}
UNFOLD = {
    "SITE_TITLE": "Gadget",
    "SITE_HEADER": "Gadget",
    "SITE_URL": "/",
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": f"{STATIC_URL}icon.svg"}],
    "COLORS": {"primary": ADMIN_ACCENT},
}
