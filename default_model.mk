# make default-model DATA=FOLDER   the model in the box, from the corpora in FOLDER
#
# FOLDER holds ontogum/, litbank/ and craft/ (annotated), text/ (wikinews, novels, academic) and
# vectors/ (GloVe), as docs/default_model.md says. Stopped at any moment, the same command goes on.
#
# make default-readings            what the model in the box says of texts it has not seen
# make default-meaning             how well it names hidden words of documents held out

DATA  ?= data
WORK  := runs/default-model
TEXTS := wikinews novels academic
PARTS := ontogum litbank craft wikinews novels
LAST  := ontogum litbank craft wikinews-last novels-last
DNTM  := $(BIN)/dntm
BUILD  = $(DNTM) data build --max-sentences 28 --vocabulary-of $(WORK)/encoder --lower-case

# The last documents of each text are held out from all training
HELD_wikinews := 150
HELD_novels   := 2
HELD_academic := 8

.PHONY: default-model
default-model: $(WORK)/both-last/all_results.json $(WORK)/baseline-last/all_results.json
	$(DNTM) evaluate $(WORK)/both-last $(WORK)/baseline-last --split dev --cache --own-cache --no-records
	$(DNTM) export $(WORK)/both-last --static $(WORK)/baseline-last --overwrite \
		--output-dir src/dntm/pretrained --note "$$(cat docs/default_model_note.txt)"

.PHONY: default-readings
default-readings: | install
	for text in docs/results/texts/*.txt docs/results/invented/*.txt src/dntm/web/texts/*.txt; do \
		$(DNTM) read $$text --output docs/results/readings/$$(basename $$text) || exit 1; done

.PHONY: default-meaning
default-meaning: $(TEXTS:%=$(WORK)/text/%.train.txt) $(WORK)/encoder/all_results.json | install
	$(DNTM) evaluate-meaning default --text $(TEXTS:%=$(WORK)/text/%.held.txt) \
		--fit $(TEXTS:%=$(WORK)/text/%.train.txt) --encoder $(WORK)/encoder \
		--json docs/results/meaning.json

$(WORK)/text/%.train.txt: $(DATA)/text/%.txt.gz
	mkdir -p $(@D)
	zcat $< | awk -v held=$(HELD_$*) -v name=$(@D)/$* 'BEGIN { RS = ""; ORS = "\n\n" } { text[NR] = $$0 } \
		END { for (i = 1; i <= NR; i++) print text[i] > (name (i > NR - held ? ".held.txt" : ".train.txt")) }'

$(WORK)/encoder/all_results.json: $(TEXTS:%=$(WORK)/text/%.train.txt) | install
	$(DNTM) pretrain --recipe naming --text $^ --output-dir $(WORK)/encoder \
		--vectors $(DATA)/vectors/glove-6b-100d.txt.gz --training.iterations 12000 \
		$$(test ! -e $(WORK)/encoder/config.yaml || echo --resume)

# The genres of OntoGUM that are left out may not be used commercially
$(WORK)/parts/ontogum: $(WORK)/encoder/all_results.json
	$(BUILD) ontogum --from $(DATA)/ontogum --output-dir $@ \
		--leave-out 'GUM_essay*' 'GUM_fiction*' 'GUM_letter*' 'GUM_podcast*' 'GUM_whow*'

$(WORK)/parts/litbank: $(WORK)/encoder/all_results.json
	$(BUILD) litbank --from $(DATA)/litbank --output-dir $@

$(WORK)/parts/craft: $(WORK)/encoder/all_results.json
	$(BUILD) $(DATA)/craft/train.jsonl.gz --limit 20 --output-dir $@

$(WORK)/parts/wikinews: $(WORK)/encoder/all_results.json
	$(BUILD) $(WORK)/text/wikinews.train.txt --documents blank-line --limit 4000 \
		--fractions .98 .01 .01 --output-dir $@

$(WORK)/parts/novels: $(WORK)/encoder/all_results.json
	$(BUILD) $(WORK)/text/novels.train.txt --documents blank-line --limit 12 \
		--fractions .9 .05 .05 --output-dir $@

$(WORK)/parts/wikinews-last: $(WORK)/encoder/all_results.json
	$(BUILD) $(WORK)/text/wikinews.train.txt --documents blank-line --limit 1500 \
		--fractions .98 .01 .01 --output-dir $@

$(WORK)/parts/novels-last: $(WORK)/encoder/all_results.json
	$(BUILD) $(WORK)/text/novels.train.txt --documents blank-line --limit 5 \
		--fractions .8 .1 .1 --output-dir $@

$(WORK)/dataset: | $(PARTS:%=$(WORK)/parts/%)
	$(DNTM) data join $(PARTS:%=$(WORK)/parts/%) --vocabulary-of $(WORK)/parts/ontogum --output-dir $@

$(WORK)/dataset-last: | $(LAST:%=$(WORK)/parts/%)
	$(DNTM) data join $(LAST:%=$(WORK)/parts/%) --vocabulary-of $(WORK)/parts/ontogum --output-dir $@

# The encoder stays as pretraining left it; in a last epoch naming counts most
TRAIN = $(DNTM) train --recipe naming --seed 1 --output-dir $(@D) $(VARIANT) \
	$$(test ! -e $(@D)/config.yaml || echo --resume)

$(WORK)/both/all_results.json: VARIANT = --model.variant both
$(WORK)/both-last/all_results.json: VARIANT = --model.variant both --training.naming-weight 8
$(WORK)/baseline%: VARIANT = --model.variant baseline --model.no-naming

$(WORK)/%-last/all_results.json: $(WORK)/%/all_results.json | $(WORK)/dataset-last
	$(TRAIN) --dataset $(WORK)/dataset-last --pretrained $(WORK)/encoder --start-from $(WORK)/$* \
		--training.epochs 1 --training.learning-rate 5e-4

$(WORK)/%/all_results.json: $(WORK)/encoder/all_results.json | $(WORK)/dataset
	$(TRAIN) --dataset $(WORK)/dataset --pretrained $(WORK)/encoder --training.validations 2
