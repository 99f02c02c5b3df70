"""Create the data folder and read the configuration file, whose paths are settings."""

from __future__ import annotations

from pathlib import Path

from gadget_site.faults import SettingError


def create_data_dir(folder: Path) -> Path:
    """Return the data folder, created if its parent exists: a missing parent means a typo or an
    unmounted disk.

    Raises:
        SettingError: the folder cannot be created.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        fault = f"there is no folder {str(folder.parent)!r} to hold {folder.name!r}"
        raise SettingError("GADGET_DATA_DIR", fault, "var") from None
    except OSError as error:
        raise SettingError(
            "GADGET_DATA_DIR", f"{str(folder)!r} cannot be created: {error.strerror}", "var"
        ) from error
    return folder


def read_config_text(path: Path) -> str:
    """Return the text of `gadget.yaml`, or of the file in GADGET_CONFIG.

    Raises:
        SettingError: the file does not exist, or cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SettingError(
            "GADGET_CONFIG", f"there is no file {str(path)!r}", "gadget.yaml"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(
            "GADGET_CONFIG", f"{path.name} cannot be read: {error}", "gadget.yaml"
        ) from error
