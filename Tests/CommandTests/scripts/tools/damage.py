"""damage.py DATABASE SQL: changes a database behind its owner's back. flip(b) is b with its middle byte turned over."""

import sqlite3
import sys


def flip(value):
    middle = len(value) // 2
    return value[:middle] + bytes([value[middle] ^ 0xFF]) + value[middle + 1 :]


database = sqlite3.connect(sys.argv[1])
database.create_function("flip", 1, flip)
database.execute("PRAGMA wal_checkpoint")
changed = database.execute(sys.argv[2]).rowcount
database.commit()
sys.exit(0 if changed > 0 else f"nothing was changed by {sys.argv[2]}")
