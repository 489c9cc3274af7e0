import functools
import time


def timed(function):
    """How long each call of a method takes, kept by its object."""

    @functools.wraps(function)
    def wrapper(self, *args, **kwargs):
        began = time.time()
        result = function(self, *args, **kwargs)
        self.seconds.append(time.time() - began)
        return result

    return wrapper
