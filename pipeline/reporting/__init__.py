"""Makes report.html of run folders: one file that needs no network. Nothing here imports TensorFlow.

facts        reads a run folder, whatever of it is there
health       says whether the run is well
curves       metrics as figures for plotly.js, and their numbers
pictures     previews as data URIs, a bounded number of them
tables       evaluation.json, or anything like it, as tables
pace         how long the run trained, and how fast
links        relative links to what lies in the run folder
glossary     what the words of a page mean, where each first stands
config_view  config.gin as markup, with the source of each value
run_page     the page of one run            comparison_page   that of several
markup       HTML that is escaped unless it says that it is markup
page         what surrounds both: style, scripts, the plotting library
"""
