"""Compares the golden record with what the program says today, or records that anew.

A change of the record is made on purpose: its commit says what changed, and why.
"""

import argparse
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ["MPLBACKEND"] = "agg"

from tests.conftest import REAL_DATA
from tests.golden import PARTS, rows

parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
parser.add_argument("--record", action="store_true", help="write the record anew")
parser.add_argument("parts", nargs="*", metavar="PART", help=f"of: {', '.join(PARTS)}; else all")
asked = parser.parse_args()
if wrong := set(asked.parts) - PARTS.keys():
    parser.error(f"no such part: {', '.join(wrong)}. There are {', '.join(PARTS)}.")
different = False
for name in asked.parts or PARTS:
    if name == rows.REAL.name and not REAL_DATA.is_dir():
        print(f"{name}: left out, it needs the real data at hand in {REAL_DATA}")
        continue
    now, found = {}, []
    for piece, made in PARTS[name].made.items():
        with TemporaryDirectory() as folder:
            entries = made(Path(folder))
        now |= entries
        found += PARTS[name].differences(piece, entries)
    print("\n".join(found) or f"{name}: as recorded", flush=True)
    if asked.record:
        PARTS[name].record(now)
    different = different or bool(found)
sys.exit(different and not asked.record)
