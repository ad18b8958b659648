"""Attention: two products, and a softmax in float32."""
