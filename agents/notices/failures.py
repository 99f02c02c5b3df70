"""Failures of sending."""


class DeliveryError(Exception):
    """A message could not be handed over.

    Attributes:
        problem: the reason, for people.
        is_final: trying again would not help.
        is_gone: the address seems to exist no longer.
        retry_after_s: the seconds for which the receiver asked us to wait; 0 if it did not.
    """

    def __init__(
        self, problem: str, *, is_final: bool = False, is_gone: bool = False, retry_after_s: float = 0.0
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.is_final = is_final
        self.is_gone = is_gone
        self.retry_after_s = retry_after_s
