"""`python -m gatefold` is the command-line tool: this process becomes it."""

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    tool = str(Path(__file__).parent / "native" / "gatefold")
    os.execv(tool, [tool, *sys.argv[1:]])
