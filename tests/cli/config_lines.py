"""The lines of `breaker config`, read."""

import re


def values(text):
    """{key: (value, origin)} of the lines of `breaker config`, but for the fallbacks."""
    lines = [line for line in text.partition("\n\n[")[0].splitlines() if not line.startswith("#")]
    return {m[1]: (m[2].strip(), m[3]) for m in (re.fullmatch(r"(\w+) *= (.*?) *# (.*)", line) for line in lines)}
