"""Compares the golden record with what the program says today, or records that anew.

A change of the record is made on purpose: its commit says what changed, and why.
"""

import argparse
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ["MPLBACKEND"] = "agg"

from tests.golden import PARTS

parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
parser.add_argument("--record", action="store_true", help="write the record anew")
parser.add_argument("parts", nargs="*", metavar="PART", help=f"of: {', '.join(PARTS)}")
asked = parser.parse_args()
different = []
for name in asked.parts or PARTS:
    with TemporaryDirectory() as folder:
        now = PARTS[name].made(Path(folder))
    if asked.record:
        PARTS[name].record(now)
    different += PARTS[name].differences(now)
print("\n".join(different) or "as recorded")
sys.exit(bool(different))
