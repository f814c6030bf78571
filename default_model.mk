# make default-model DATA=FOLDER   the model in the box, from the corpora in FOLDER
#
# FOLDER holds ontogum/, litbank/ and craft/ (annotated) and text/ (wikinews, novels, academic), as
# docs/default_model.md says. Stopped at any moment, the same command goes on.
#
# make default-readings            what the model in the box says of texts it has not seen

DATA  ?= data
WORK  := runs/default-model
PARTS := ontogum litbank craft wikinews novels
DNTM  := $(BIN)/dntm
BUILD := $(DNTM) data build --max-sentences 28

.PHONY: default-model
default-model: $(WORK)/both/all_results.json $(WORK)/baseline/all_results.json
	$(DNTM) export $(WORK)/both --static $(WORK)/baseline --overwrite \
		--output-dir src/dntm/pretrained --note "$$(cat docs/default_model_note.txt)"

.PHONY: default-readings
default-readings: | install
	for text in docs/results/texts/*.txt src/dntm/web/texts/*.txt; do \
		$(DNTM) read $$text --output docs/results/readings/$$(basename $$text) || exit 1; done

# The genres of OntoGUM that are left out may not be used commercially
$(WORK)/parts/ontogum: | install
	$(BUILD) ontogum --from $(DATA)/ontogum --output-dir $@ \
		--leave-out 'GUM_essay*' 'GUM_fiction*' 'GUM_letter*' 'GUM_podcast*' 'GUM_whow*'

$(WORK)/parts/litbank: | install
	$(BUILD) litbank --from $(DATA)/litbank --output-dir $@

$(WORK)/parts/craft: | install
	$(BUILD) $(DATA)/craft/train.jsonl.gz --limit 20 --output-dir $@

$(WORK)/parts/wikinews: | install
	$(BUILD) $(DATA)/text/wikinews.txt.gz --documents blank-line --limit 2200 --output-dir $@

$(WORK)/parts/novels: | install
	$(BUILD) $(DATA)/text/novels.txt.gz --documents blank-line --limit 2 --output-dir $@

$(WORK)/dataset: | $(PARTS:%=$(WORK)/parts/%)
	$(DNTM) data join $(PARTS:%=$(WORK)/parts/%) --output-dir $@

# Whose words pretraining has rows for, beside the most frequent of its text
$(WORK)/ontogum: | install
	$(BUILD) ontogum --from $(DATA)/ontogum --output-dir $@

$(WORK)/encoder/all_results.json: | $(WORK)/ontogum
	$(DNTM) pretrain --recipe small --dataset $(WORK)/ontogum --output-dir $(WORK)/encoder \
		--text $(DATA)/text/wikinews.txt.gz $(DATA)/text/novels.txt.gz $(DATA)/text/academic.txt.gz \
		--training.iterations 12000 $$(test ! -e $(WORK)/encoder/config.yaml || echo --resume)

$(WORK)/%/all_results.json: $(WORK)/encoder/all_results.json | $(WORK)/dataset
	$(DNTM) train --recipe modern --dataset $(WORK)/dataset --output-dir $(WORK)/$* \
		--model.variant $* --model.encoder-dim 256 --model.context-dim 256 --model.salience \
		--pretrained $(WORK)/encoder --training.epochs 2 --seed 1 \
		$$(test ! -e $(WORK)/$*/config.yaml || echo --resume)
