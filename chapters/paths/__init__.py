"""The interplay of attention paths: a theory of finite width, and heads of trained networks."""
