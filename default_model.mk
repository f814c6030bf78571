# make default-model DATA=FOLDER   train the bundled model from the corpora in FOLDER
#
# FOLDER holds ontogum/, litbank/ and craft/ (annotated), text/ (wikinews, novels, academic) and
# vectors/ (GloVe); see docs/model_card.md. Interrupted runs resume: repeat the command.
#
# make default-readings            readings of texts that the bundled model has not seen
# make default-meaning             its recall of hidden words in held-out documents

DATA  ?= data
WORK  := runs/default-model
TEXTS := wikinews novels academic
PARTS := ontogum litbank craft wikinews novels
LAST  := ontogum litbank craft wikinews-last novels-last
SECOND := ontogum litbank craft wikinews-second novels-second
THIRD := ontogum litbank craft wikinews-third novels-third academic-third
DEV   := ontogum litbank wikinews-second
MODELS := both baseline
BUNDLED := src/dntm/pretrained
DNTM  := $(BIN)/dntm
BUILD  = $(DNTM) data build --max-sentences 28 --vocabulary-of $(WORK)/encoder --lower-case

# The last documents of each text are held out from all training
HELD_wikinews := 150
HELD_novels   := 2
HELD_academic := 8
# The second round reads as many other documents as the first
READ_wikinews := 4000
READ_novels   := 12
# The pointer is trained on documents after these
POINT_wikinews := 8000-9500
POINT_novels   := 24-30
POINT_academic := 60-100

.PHONY: default-model
default-model: $(MODELS:%=$(WORK)/%-entities/all_results.json) | $(WORK)/dataset-dev
	$(DNTM) export $(WORK)/both-entities --static $(WORK)/baseline-entities --overwrite \
		--output-dir $(BUNDLED) --note "$$(cat docs/default_model_note.txt)"
	$(DNTM) evaluate $(BUNDLED) $(BUNDLED)/static --dataset $(WORK)/dataset-dev --split dev --no-records
	$(MAKE) default-spelling

# Whole documents: a name is new once per document
.PHONY: default-spelling
default-spelling: $(TEXTS:%=$(WORK)/spelling/%)
	$(DNTM) spelling default --dataset $(TEXTS:%=$(WORK)/spelling/%)

$(WORK)/spelling/%: $(WORK)/text/%.train.txt
	$(DNTM) data build $< --documents blank-line --vocabulary-of default --lower-case \
		--fractions .98 .02 0 --overwrite --output-dir $@

.PHONY: default-readings
default-readings: | install
	for text in docs/results/invented/*.txt; do \
		$(DNTM) read $$text --output docs/results/readings/$$(basename $$text) || exit 1; done

.PHONY: default-meaning
default-meaning: $(TEXTS:%=$(WORK)/text/%.train.txt) | install
	$(DNTM) evaluate-meaning default --text $(TEXTS:%=$(WORK)/text/%.held.txt) \
		--fit $(TEXTS:%=$(WORK)/text/%.train.txt) --json docs/results/meaning.json

$(WORK)/text/%.train.txt: $(DATA)/text/%.txt.gz
	mkdir -p $(@D)
	zcat $< | awk -v held=$(HELD_$*) -v name=$(@D)/$* 'BEGIN { RS = ""; ORS = "\n\n" } { text[NR] = $$0 } \
		END { for (i = 1; i <= NR; i++) print text[i] > (name (i > NR - held ? ".held.txt" : ".train.txt")) }'

$(WORK)/text/%.second.txt: $(WORK)/text/%.train.txt
	awk 'BEGIN { RS = ""; ORS = "\n\n" } NR > $(READ_$*) && NR <= 2 * $(READ_$*)' $< > $@

$(WORK)/text/%.third.txt: $(WORK)/text/%.train.txt
	awk 'BEGIN { RS = ""; ORS = "\n\n"; split("$(POINT_$*)", of, "-") } NR > of[1] && NR <= of[2]' $< > $@

PRETRAIN = $(DNTM) pretrain --recipe naming --text $(TEXTS:%=$(WORK)/text/%.train.txt) --output-dir $(@D) \
	--vectors $(DATA)/vectors/glove-6b-100d.txt.gz $$(test ! -e $(@D)/config.yaml || echo --resume)

$(WORK)/encoder/all_results.json: $(TEXTS:%=$(WORK)/text/%.train.txt) | install
	$(PRETRAIN) --training.iterations 12000

# The encoder is trained further for its language model: rarer words, and sentences with entities
$(WORK)/encoder-second/all_results.json: $(WORK)/both-last/all_results.json
	$(PRETRAIN) --start-from $(WORK)/both-last --training.iterations 10000 --training.learning-rate 1.5e-3 \
		--training.subsample 3e-5 --training.hide .1

# The licenses of the genres left out of OntoGUM forbid commercial use
$(WORK)/parts/ontogum: $(WORK)/encoder/all_results.json
	$(BUILD) ontogum --from $(DATA)/ontogum --output-dir $@ \
		--leave-out 'GUM_essay*' 'GUM_fiction*' 'GUM_letter*' 'GUM_podcast*' 'GUM_whow*'

$(WORK)/parts/litbank: $(WORK)/encoder/all_results.json
	$(BUILD) litbank --from $(DATA)/litbank --output-dir $@

$(WORK)/parts/craft: $(WORK)/encoder/all_results.json
	$(BUILD) $(DATA)/craft/train.jsonl.gz --limit 20 --output-dir $@

$(WORK)/parts/wikinews: $(WORK)/encoder/all_results.json
	$(BUILD) $(WORK)/text/wikinews.train.txt --documents blank-line --limit $(READ_wikinews) \
		--fractions .98 .01 .01 --output-dir $@

$(WORK)/parts/novels: $(WORK)/encoder/all_results.json
	$(BUILD) $(WORK)/text/novels.train.txt --documents blank-line --limit $(READ_novels) \
		--fractions .9 .05 .05 --output-dir $@

$(WORK)/parts/wikinews-last: $(WORK)/encoder/all_results.json
	$(BUILD) $(WORK)/text/wikinews.train.txt --documents blank-line --limit 1500 \
		--fractions .98 .01 .01 --output-dir $@

$(WORK)/parts/novels-last: $(WORK)/encoder/all_results.json
	$(BUILD) $(WORK)/text/novels.train.txt --documents blank-line --limit 5 \
		--fractions .8 .1 .1 --output-dir $@

$(WORK)/parts/wikinews-second: $(WORK)/text/wikinews.second.txt $(WORK)/encoder/all_results.json
	$(BUILD) $< --documents blank-line --fractions .98 .01 .01 --output-dir $@

$(WORK)/parts/novels-second: $(WORK)/text/novels.second.txt $(WORK)/encoder/all_results.json
	$(BUILD) $< --documents blank-line --fractions .9 .05 .05 --output-dir $@

$(WORK)/parts/wikinews-third: $(WORK)/text/wikinews.third.txt $(WORK)/encoder/all_results.json
	$(BUILD) $< --documents blank-line --fractions .98 .01 .01 --output-dir $@

$(WORK)/parts/%-third: $(WORK)/text/%.third.txt $(WORK)/encoder/all_results.json
	$(BUILD) $< --documents blank-line --fractions .9 .05 .05 --output-dir $@

$(WORK)/dataset: | $(PARTS:%=$(WORK)/parts/%)
	$(DNTM) data join $(PARTS:%=$(WORK)/parts/%) --vocabulary-of $(WORK)/parts/ontogum --output-dir $@

$(WORK)/dataset-last: | $(LAST:%=$(WORK)/parts/%)
	$(DNTM) data join $(LAST:%=$(WORK)/parts/%) --vocabulary-of $(WORK)/parts/ontogum --output-dir $@

$(WORK)/dataset-second: | $(SECOND:%=$(WORK)/parts/%)
	$(DNTM) data join $(SECOND:%=$(WORK)/parts/%) --vocabulary-of $(WORK)/parts/ontogum --output-dir $@

$(WORK)/dataset-third: | $(THIRD:%=$(WORK)/parts/%)
	$(DNTM) data join $(THIRD:%=$(WORK)/parts/%) --vocabulary-of $(WORK)/parts/ontogum --output-dir $@

# Without novels: one of them would be most of the dev split
$(WORK)/dataset-dev: | $(DEV:%=$(WORK)/parts/%)
	$(DNTM) data join $(DEV:%=$(WORK)/parts/%) --vocabulary-of $(WORK)/parts/ontogum --output-dir $@

# The pretrained encoder is frozen. Two epochs, one with a higher weight of naming, and a second round
# with the encoder that was trained further
TRAIN = $(DNTM) train --recipe naming --seed 1 --output-dir $(@D) $(VARIANT) \
	$$(test ! -e $(@D)/config.yaml || echo --resume)

$(WORK)/both/all_results.json: VARIANT = --model.variant both
$(WORK)/both-last/all_results.json $(WORK)/both-second/all_results.json: \
	VARIANT = --model.variant both --training.naming-weight 8
$(WORK)/baseline%: VARIANT = --model.variant baseline --model.extensions salience unseen-pooling

$(MODELS:%=$(WORK)/%/all_results.json): $(WORK)/encoder/all_results.json | $(WORK)/dataset
	$(TRAIN) --dataset $(WORK)/dataset --pretrained $(WORK)/encoder --training.validations 2

$(MODELS:%=$(WORK)/%-last/all_results.json): \
$(WORK)/%-last/all_results.json: $(WORK)/%/all_results.json | $(WORK)/dataset-last
	$(TRAIN) --dataset $(WORK)/dataset-last --pretrained $(WORK)/encoder --start-from $(WORK)/$* \
		--training.epochs 1 --training.learning-rate 5e-4

$(WORK)/both-second/all_results.json: ENCODER = --pretrained $(WORK)/encoder-second
$(WORK)/both-second/all_results.json: $(WORK)/encoder-second/all_results.json

$(MODELS:%=$(WORK)/%-second/all_results.json): \
$(WORK)/%-second/all_results.json: $(WORK)/%-last/all_results.json | $(WORK)/dataset-second
	$(TRAIN) --dataset $(WORK)/dataset-second --start-from $(WORK)/$*-last --training.epochs 1 \
		--training.learning-rate 1e-3 $(ENCODER)

# Word embeddings are frozen: first the pointer alone is trained, then all terms of the output layer.
# No hidden words and no dropout: with dropout, the probabilities of entities come out too low
CALM = --dataset $(WORK)/dataset-third --training.hide 0 --training.reveal 0 --training.validations 2 \
	--model.dropout-embedding 0 --model.dropout-hidden 0

$(WORK)/pointer/all_results.json $(WORK)/both-entities/all_results.json: \
	VARIANT = --model.variant both --training.naming-weight 0 --model.dropout-context 0 \
		--model.extensions entity-residual salience unseen-pooling pointer naming

$(WORK)/pointer/all_results.json: $(WORK)/both-second/all_results.json | $(WORK)/dataset-third
	$(TRAIN) $(CALM) --start-from $(WORK)/both-second --training.epochs 2 --training.learning-rate 3e-3 \
		--training.freeze x core memory output terms.dynamic-output terms.entity-residual \
			terms.salience terms.naming

$(WORK)/both-entities/all_results.json: $(WORK)/pointer/all_results.json
	$(TRAIN) $(CALM) --start-from $(WORK)/pointer --training.epochs 1 --training.learning-rate 1e-3 \
		--training.freeze x core memory output terms.naming

$(WORK)/baseline-entities/all_results.json: $(WORK)/baseline-second/all_results.json | $(WORK)/dataset-third
	$(TRAIN) $(CALM) --start-from $(WORK)/baseline-second --training.epochs 1 --training.learning-rate 1e-3 \
		--training.freeze x core output
