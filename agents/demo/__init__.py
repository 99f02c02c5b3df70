"""The demo: two organisations with people, employees that follow scripts, and records to work on."""

from .building import Built, RealModel, build

__all__ = ["Built", "RealModel", "build"]
