"""Tests of the operator library, one module for each family."""
