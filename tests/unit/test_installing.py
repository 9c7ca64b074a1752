"""What set-up compiles is what a search calls."""

import subprocess
import sys
from pathlib import Path

SEARCH = """
from tests.unit.layout.test_learn import learn, ranges
from zorder_pipeline.installing import compile_kernels
from zorder_pipeline.layout.grow_kernel import grown
compile_kernels()
known = list(grown.signatures)
learn(ranges("ab", [5_000, 25_000], 120, 3))
print(len(known), known == grown.signatures)
"""


def test_a_search_compiles_no_tree_anew_after_set_up() -> None:
    """In a process of its own: other tests grow trees of codes of other types."""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", SEARCH], cwd=root, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("1 True\n", 0), done.stderr
