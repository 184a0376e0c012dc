from .shape import shape_of as shape_of
