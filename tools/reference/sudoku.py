"""Sudoku of order 2 (4x4) and 3 (9x9): own generator with unique solutions, text form, tokenizer of the small models.

Text of a grid: its rows, each ended by a newline, '.' for an empty cell. A model's prompt is <bos> and that text; its
answer the solved rows joined by newlines and <eos>, so that every cell of the answer stands a constant distance behind
the same cell of the question.
"""

import json
import random

import numpy

PAD, EOS, BOS, UNK, MASK = range(5)
NEWLINE, BLANK = 5, 6
VOCABULARY = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "\n", ".", *"123456789"]


def solved_grid(order, rng):
    """A random solved grid, [n, n] of 1..n: the canonical pattern under every symmetry of the game."""
    n = order * order
    base = numpy.array([[(order * (r % order) + r // order + c) % n for c in range(n)] for r in range(n)])
    grid = rng.permutation(n)[base] + 1
    return shuffled(grid, order, rng)


def shuffled(grid, order, rng):
    """Permutes rows in bands, bands, columns in stacks, stacks, digits; may transpose. Keeps uniqueness of solutions."""
    n = order * order

    def lines():
        return numpy.concatenate([b * order + rng.permutation(order) for b in rng.permutation(order)])

    grid = grid[lines()][:, lines()]
    relabel = numpy.concatenate([[0], rng.permutation(n) + 1])
    grid = relabel[grid]
    return grid.T if rng.random() < 0.5 else grid


class Solver:
    """Counts solutions by depth-first search over bit masks, always at the cell with the fewest candidates."""

    def __init__(self, order):
        self.n = n = order * order
        self.box = [order * (i // n // order) + i % n // order for i in range(n * n)]

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


def random_solution(order, seed):
    """A random solved grid by randomised search: reaches all grids, unlike the symmetries of one pattern."""
    n = order * order
    rng = random.Random(seed)
    first = list(range(1, n + 1))
    rng.shuffle(first)
    return Solver(order).solve(first + [0] * (n * n - n), limit=1, rng=rng)[0]


def dig(order, solution, givens, seed):
    """Erases cells in random order while the solution stays unique, down to `givens` cells at best."""
    rng = random.Random(seed)
    puzzle, solver = list(solution), Solver(order)
    cells = list(range(len(puzzle)))
    rng.shuffle(cells)
    left = len(puzzle)
    for i in cells:
        if left <= givens:
            break
        kept, puzzle[i] = puzzle[i], 0
        if len(solver.solve(puzzle)) > 1:
            puzzle[i] = kept
        else:
            left -= 1
    return puzzle


def make_pool(order, count, fewest, most, seed):
    """[count, 2, n, n] puzzles and solutions; givens drawn from fewest..most."""
    out = []
    rng = random.Random(seed)
    for k in range(count):
        solution = random_solution(order, seed * 1_000_003 + k)
        puzzle = dig(order, solution, rng.randint(fewest, most), seed * 7_000_003 + k)
        out.append([puzzle, solution])
    n = order * order
    return numpy.array(out, dtype=numpy.int64).reshape(count, 2, n, n)


def augment(pairs, order, rng):
    """A symmetric copy of every puzzle with its solution."""
    n = order * order
    out = numpy.empty_like(pairs)
    for k, pair in enumerate(pairs):
        rows = numpy.concatenate([b * order + rng.permutation(order) for b in rng.permutation(order)])
        columns = numpy.concatenate([b * order + rng.permutation(order) for b in rng.permutation(order)])
        relabel = numpy.concatenate([[0], rng.permutation(n) + 1])
        new = relabel[pair[:, rows][:, :, columns]]
        out[k] = new.transpose(0, 2, 1) if rng.random() < 0.5 else new
    return out


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
