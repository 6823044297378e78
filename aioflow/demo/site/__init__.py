"""The web site of the demonstration, a process of its own: `python -m aioflow.demo.site`.

Real estate with search, result pages and details, the three sources of the campaign query, and a link
farm. All content is made from a seed, so tests know every house.
"""
