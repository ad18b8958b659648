"""Files of arrays: npy, safetensors, HDF5, GGUF and ONNX, and conversion."""
