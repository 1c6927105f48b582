"""Sudoku with boxes of 2x2 (4x4), 2x3 (6x6) and 3x3 (9x9): own generator of puzzles with one solution, text form,
tokenizer of the small models.

Text of a grid: its rows, each ended by a newline, '.' for an empty cell. A model's prompt is <bos> and that text; its
answer the solved rows joined by newlines and <eos>, so that every cell of the answer stands a constant distance behind
the same cell of the question.
"""

import json
import random
from typing import NamedTuple

import numpy

PAD, EOS, BOS, UNK, MASK = range(5)
NEWLINE, BLANK = 5, 6
VOCABULARY = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "\n", ".", *"123456789"]


class Box(NamedTuple):
    """A game's box: rows x columns cells; the grid has n = rows * columns rows, columns, boxes and digits."""

    rows: int
    columns: int

    @property
    def n(self):
        return self.rows * self.columns

    @classmethod
    def parse(cls, text):
        """2x3 -> Box(2, 3)"""
        rows, columns = text.split("x")
        return cls(int(rows), int(columns))

    def __str__(self):
        return f"{self.rows}x{self.columns}"


class Solver:
    """Counts solutions by depth-first search over bit masks, always at the cell with the fewest candidates."""

    def __init__(self, box):
        self.n = n = box.n
        self.box = [box.rows * (i // n // box.rows) + i % n // box.columns for i in range(n * n)]

    def solve(self, cells, limit=2, rng=None):
        n, full = self.n, (1 << self.n) - 1
        rows, columns, boxes = [0] * n, [0] * n, [0] * n
        cells, empty, found = list(cells), [], []
        for i, value in enumerate(cells):
            if value:
                bit = 1 << value - 1
                rows[i // n] |= bit
                columns[i % n] |= bit
                boxes[self.box[i]] |= bit
            else:
                empty.append(i)

        def search():
            if not empty:
                found.append(list(cells))
                return
            best, best_free, best_count = -1, 0, 99
            for k, i in enumerate(empty):
                free = full & ~(rows[i // n] | columns[i % n] | boxes[self.box[i]])
                count = free.bit_count()
                if count < best_count:
                    best, best_free, best_count = k, free, count
                    if count <= 1:
                        break
            if best_count == 0:
                return
            i = empty[best]
            empty[best] = empty[-1]
            empty.pop()
            values = [v for v in range(n) if best_free >> v & 1]
            if rng is not None:
                rng.shuffle(values)
            for v in values:
                bit = 1 << v
                cells[i] = v + 1
                rows[i // n] |= bit
                columns[i % n] |= bit
                boxes[self.box[i]] |= bit
                search()
                rows[i // n] &= ~bit
                columns[i % n] &= ~bit
                boxes[self.box[i]] &= ~bit
                if len(found) >= limit:
                    break
            cells[i] = 0
            empty.append(i)
            empty[best], empty[-1] = empty[-1], empty[best]

        search()
        return found


def random_solution(box, seed):
    """A random solved grid by randomised search: reaches all grids, unlike the symmetries of one pattern."""
    n = box.n
    rng = random.Random(seed)
    first = list(range(1, n + 1))
    rng.shuffle(first)
    return Solver(box).solve(first + [0] * (n * n - n), limit=1, rng=rng)[0]


def minimal_puzzle(box, solution, seed):
    """Erases cells in random order while the solution stays unique: no given of the result can be spared."""
    rng = random.Random(seed)
    puzzle, solver = list(solution), Solver(box)
    for i in rng.sample(range(len(puzzle)), len(puzzle)):
        kept, puzzle[i] = puzzle[i], 0
        if len(solver.solve(puzzle)) > 1:
            puzzle[i] = kept
    return puzzle


def make_pool(box, count, seed):
    """[count, 2, n, n] minimal puzzles and their solutions."""
    out = []
    for k in range(count):
        solution = random_solution(box, seed * 1_000_003 + k)
        out.append([minimal_puzzle(box, solution, seed * 7_000_003 + k), solution])
    return numpy.array(out, dtype=numpy.int64).reshape(count, 2, box.n, box.n)


def with_givens(pairs, fewest, most, rng):
    """Every puzzle with givens added to a number drawn from fewest..most; those with more already stay as they are."""
    out = pairs.copy()
    for puzzle, solution in out:
        empty = numpy.flatnonzero(puzzle == 0)
        missing = rng.integers(fewest, most + 1) - (puzzle.size - len(empty))
        if missing > 0:
            added = rng.permutation(empty)[:missing]
            puzzle.flat[added] = solution.flat[added]
    return out


def augment(pairs, box, rng):
    """A symmetric copy of every puzzle with its solution: rows within bands, bands, columns within stacks, stacks and
    digits permuted; square boxes may be transposed."""

    def lines(size):
        return numpy.concatenate([b * size + rng.permutation(size) for b in rng.permutation(box.n // size)])

    out = numpy.empty_like(pairs)
    for k, pair in enumerate(pairs):
        relabel = numpy.concatenate([[0], rng.permutation(box.n) + 1])
        new = relabel[pair[:, lines(box.rows)][:, :, lines(box.columns)]]
        out[k] = new.transpose(0, 2, 1) if box.rows == box.columns and rng.random() < 0.5 else new
    return out


def canonical(solution):
    """The grid's bytes after renaming its digits in the order of the first row."""
    names = numpy.zeros(len(solution) + 1, dtype=numpy.int8)
    names[solution[0]] = numpy.arange(1, len(solution) + 1)
    return names[solution].tobytes()


def token_rows(grids):
    """[count, n, n] digits -> [count, n * (n + 1)] ids, every row ended by a newline."""
    ids = numpy.where(grids == 0, BLANK, grids + BLANK)
    ends = numpy.full((*ids.shape[:2], 1), NEWLINE)
    return numpy.concatenate([ids, ends], axis=2).reshape(len(grids), -1)


def prompt_ids(puzzles):
    return numpy.concatenate([numpy.full((len(puzzles), 1), BOS), token_rows(puzzles)], axis=1)


def answer_ids(solutions):
    ids = token_rows(solutions)
    ids[:, -1] = EOS
    return ids


def tokenizer_json():
    """A Hugging Face tokenizer of one id a character; anything else is <unk>."""
    special = VOCABULARY[:5]
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [
                {
                    "id": i,
                    "content": token,
                    "single_word": False,
                    "lstrip": False,
                    "rstrip": False,
                    "normalized": False,
                    "special": True,
                }
                for i, token in enumerate(special)
            ],
            "normalizer": None,
            "pre_tokenizer": None,
            "post_processor": None,
            "decoder": {"type": "Fuse"},
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": "<unk>",
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "fuse_unk": False,
                "byte_fallback": False,
                "ignore_merges": False,
                "vocab": {token: i for i, token in enumerate(VOCABULARY)},
                "merges": [],
            },
        },
        indent=1,
        ensure_ascii=False,
    )
