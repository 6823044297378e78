"""The functions of the expression language: one family a module, and the table of all."""
