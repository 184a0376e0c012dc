"""People review what a model suggests: one file holds rows, suggestions and decisions, and a better model comes of it.

Where to read:

file_schema   the tables of a review file, and the checks of a file that is opened
store         `ReviewStore`: rows, decisions, undo, guidelines; one transaction each
queue         which rows a reviewer gets next, and why
suggest       what a model suggests for the rows, how sure it is, and which given labels look wrong
verdicts      the labels of a row by each reviewer, and the final ones
agreement     Krippendorff's alpha between reviewers
progress      precision on the control sample, decisions per day, label and reviewer
exchange      rows in, reviewed rows out
update        a new model from reviewed rows, compared with the old one on the control sample
swap          put a model folder in the place of another, and back

Nothing here knows of the web; the server and the commands call the same functions.
"""

from longtail._front_door import front_door

__getattr__, __dir__, __all__ = front_door(__name__, __file__)
