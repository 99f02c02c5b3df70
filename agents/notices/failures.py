"""Failures of sending."""


class DeliveryError(Exception):
    """A message could not be handed over.

    Attributes:
        problem: the reason, for people.
        is_final: trying again would not help.
        is_gone: the address seems to exist no longer.
    """

    def __init__(self, problem: str, *, is_final: bool = False, is_gone: bool = False) -> None:
        super().__init__(problem)
        self.problem = problem
        self.is_final = is_final
        self.is_gone = is_gone
