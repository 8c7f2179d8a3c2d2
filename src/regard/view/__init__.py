"""Pictures: attention and training curves, in the terminal, as SVG, PNG or one HTML file.

Below decoding, so that what a translator gives back can show itself: a picture is made of pieces of
text and arrays of weights, and knows no model.
"""
