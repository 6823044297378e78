"""The algorithms: those of Sheng, Zhang, Tao and Jin (2012), and the one that chooses by itself."""
