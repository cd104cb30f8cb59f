"""A fault to plant."""
from dataclasses import dataclass


@dataclass
class Bug:
    where: str   # whose results it spoils
    what: str
    file: str
    before: str  # stands in the file exactly once
    after: str
    tests: str   # gtest filter of the tests that may catch it
