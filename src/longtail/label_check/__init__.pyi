from .check import check_labels as check_labels
from .findings import write_findings as write_findings
from .folds import out_of_fold as out_of_fold
from .suspects import Suspects as Suspects
from .suspects import find_missing as find_missing
from .suspects import find_wrong as find_wrong
from .suspects import recall_of_labels as recall_of_labels
from .suspects import weigh as weigh
