"""The shape of error messages: `<argument> must be <expected>; got <value>. <fix>`."""

import re
from collections.abc import Callable

#: A message has one of these words: it states a rule, the given value, or a fix.
WORDS = re.compile(r"\b(must|got|not|cannot|use)\b")

#: Names that begin a message with a capital letter followed by lower case.
NAMES = ("Python", "Ctrl-C", "Linux", "Zarr", "Arrow", "Octave")

#: The longest message, in characters.
LONGEST = 400


def faults(message: str) -> list[str]:
    """Return the rules that a message breaks; none for a good message."""
    found = []
    if "\n" in message:
        found.append("has several lines")
    if message.endswith("."):
        found.append("ends with a period")
    if re.match(r"[A-Z][a-z]", message) and not message.startswith(NAMES):
        found.append("begins with a capital letter")
    if re.match(r"(it|its|they|this|that)\b", message):
        found.append("begins with a pronoun")
    if not WORDS.search(message):
        found.append("has none of must, got, not, cannot, use")
    if len(message) > LONGEST:
        found.append(f"is longer than {LONGEST} characters")
    return found


def provoke(call: Callable[[], object]) -> str:
    """Return the message of the error that a call raises. The error must be ours."""
    try:
        call()
    except (OSError, KeyError) as error:
        return str(error.args[-1])
    except Exception as error:
        return str(error)
    raise AssertionError("the call raises no error")
