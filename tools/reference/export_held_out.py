"""Writes the held-out puzzles of a training run as quizzes,solutions: a grid a field, row by row, 0 for an empty cell.

    python tools/reference/export_held_out.py RUN_FOLDER models/sudoku-6x6/held_out.csv
"""

import pathlib
import sys

import numpy

held = numpy.load(pathlib.Path(sys.argv[1]) / "pool.npz")["held"]
lines = ["quizzes,solutions"]
lines += [",".join("".join(map(str, grid.ravel())) for grid in pair) for pair in held]
pathlib.Path(sys.argv[2]).write_text("\n".join(lines) + "\n")
