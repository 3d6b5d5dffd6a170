"""The tokens that the test feeds."""

VOCABULARY = 96
# Tokens that follow a prompt one by one.
MORE = 3


def token(position):
    return (37 * position + 11) % VOCABULARY
