"""The one error that a wrong setting raises."""

from django.core.exceptions import ImproperlyConfigured


class SettingError(ImproperlyConfigured):
    """A setting is wrong: its name, what is wrong with its value, and an example that would be right."""

    def __init__(self, name: str, fault: str, example: str) -> None:
        super().__init__(f"{name}: {fault}. Example: {name}={example}")
        self.name = name
        self.fault = fault
        self.example = example
