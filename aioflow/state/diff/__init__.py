"""The comparison of a relation with its table: `diff`, and the suspects that it holds back."""
