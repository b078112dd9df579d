"""A task for the harness lm_eval: eight questions with three ends each."""
import json
import os

# Whole sentences with one plausible end.
QUESTIONS = [("The capital of France is", [" Paris", " cheese", " seven"], 0), ("Two plus two makes", [" blue", " four", " Rome"], 1),
             ("The sun rises in the", [" east", " fridge", " number"], 0), ("Cats like to drink", [" iron", " doors", " milk"], 2),
             ("Once upon a", [" time", " oven", " seven"], 0), ("She opened the door and went", [" purple", " outside", " percent"], 1),
             ("In winter it is very", [" cold", " spoon", " Tuesday"], 0), ("A week has seven", [" days", " cats", " rivers"], 0)]
TASK = """
task: ends_of_sentences
dataset_path: json
dataset_kwargs: {data_files: {test: %s}}
output_type: multiple_choice
test_split: test
doc_to_text: "{{query}}"
doc_to_choice: "{{choices}}"
doc_to_target: "{{gold}}"
target_delimiter: ""
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]
"""


def written(folder):
    """Writes the task into the folder, for its TaskManager."""
    data = os.path.join(folder, "questions.jsonl")
    with open(data, "w") as file:
        file.writelines(json.dumps({"query": q, "choices": c, "gold": g}) + "\n" for q, c, g in QUESTIONS)
    with open(os.path.join(folder, "ends.yaml"), "w") as file:
        file.write(TASK % data)
