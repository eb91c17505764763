"""The one error that a user can mend; apart from `interfaces`, so that raising it needs no TensorFlow."""


class UserError(ValueError):
    """A mistake that the user can mend: the message names the rule, the value received and the remedy."""
