"""Systems under test, what feeds them, and the campaign that puts both together.

Imports point down (architecture.md): `passes` and `engines` under
`executors`, those under `campaign`, that under `__main__`. TensorFlow and JAX
are imported only by their own executor, in a process of its own.
"""
