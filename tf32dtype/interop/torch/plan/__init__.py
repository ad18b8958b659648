"""Plans of models: formats for each layer, applied, searched and saved."""
