"""The version of Gadget; the package that `make wheel` builds has the same version."""

VERSION = "0.1.0"
