"""Exceptions of the engines part."""


class EngineError(Exception):
    """Anything that the engines part refuses or fails at."""


class ProfileError(EngineError):
    """A step-time profile cannot be found, read or understood."""


class KvCacheTooSmallError(EngineError):
    """The KV cache does not hold one request of the maximum length."""


class ModelError(EngineError):
    """A model cannot be loaded."""


class ArgumentError(EngineError):
    """A flag's value does not go with the model or the machine."""


class RequestError(EngineError):
    """A request that the server answers with an error body.

    Attributes:
        status: HTTP status code.
        kind: the error's `type` in the body.
        param: the field at fault, or None.
    """

    def __init__(
        self, message: str, *, status: int = 400, kind: str = "BadRequestError", param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.param = param
