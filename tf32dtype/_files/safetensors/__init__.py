"""Safetensors files: headers, schemes of quantized weights, shards."""
