"""The one error that a wrong setting raises."""

from django.core.exceptions import ImproperlyConfigured


class SettingError(ImproperlyConfigured):
    """A setting is wrong: its name, what is wrong with its value, and an example that would be right.

    Args:
        example_name: the setting in the example, if it is a different one.
    """

    def __init__(self, name: str, fault: str, example: str, example_name: str = "") -> None:
        super().__init__(f"{name}: {fault}. Example: {example_name or name}={example}")
        self.name = name
        self.fault = fault
        self.example = example
