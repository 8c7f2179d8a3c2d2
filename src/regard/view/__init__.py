"""Pictures: training curves, as SVG that needs nothing and PNG that needs matplotlib."""
