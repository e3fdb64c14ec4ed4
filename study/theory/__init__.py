"""The linear orthogonal setting of section 4, solved: numbers without a network.

What it computes is derived in docs/dynamics.md. It needs numpy, scipy and pandas; nothing else in
`study` imports it, so a trial runs without scipy.
"""
