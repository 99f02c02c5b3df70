"""The version of Gadget; the package that `make wheel` builds has the same."""

VERSION = "0.1.0"
