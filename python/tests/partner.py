"""The C++ program with which tests of topics and tables share them."""

import os

import pytest

PARTNER = os.environ.get("DUNLIN_PARTNER", "")
needs_partner = pytest.mark.skipif(not PARTNER, reason="DUNLIN_PARTNER names no C++ program")
