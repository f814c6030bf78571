# make bundled-model DATA=FOLDER   train the bundled model from the corpora in FOLDER
#
# FOLDER holds ontogum/, litbank/, craft/ and amalgum/ (annotated), text/ (wikinews, novels,
# academic, science_fiction) and vectors/ (GloVe); see docs/model_card.md. Interrupted builds
# resume: repeat the command. The stages `core`, `static` and `dynamic` take hours on one core.
#
# make bundled-results             everything in docs/ that depends on the bundled model

DATA    ?= data
WORK    := runs/bundled-model
TEXTS   := wikinews novels academic science_fiction
MARKED  := ontogum litbank craft amalgum
BUNDLED := src/dntm/pretrained
DNTM    := $(BIN)/dntm
VECTORS := $(DATA)/vectors/glove-6b-100d.txt.gz
BUILD    = $(DNTM) data build --max-sentences 28 --vocabulary-of $(WORK)/gaps --lower-case
RESUME   = $$(test ! -e $(@D)/config.yaml || echo --resume)

# The last documents of each text are held out from all training
HELD_wikinews        := 150
HELD_novels          := 2
HELD_academic        := 8
HELD_science_fiction := 12
# The last stage reads this many other documents
LAST_wikinews        := 1500
LAST_novels          := 4
LAST_academic        := 40
LAST_science_fiction := 15
# Documents of the dev split
SPLIT_wikinews       := .98 .02 0

.PHONY: bundled-model bundled-results
bundled-model: $(WORK)/dynamic/all_results.json $(WORK)/static/all_results.json \
		$(TEXTS:%=$(WORK)/spelling/%)
	$(DNTM) export $(WORK)/dynamic --static $(WORK)/static --overwrite --output-dir $(BUNDLED) \
		--note "$$(cat docs/bundled_model_note.txt)"
	$(DNTM) spelling default --dataset $(TEXTS:%=$(WORK)/spelling/%)
	for stage in gaps types encoder core pointer static dynamic; do \
		tail -n 1 $(WORK)/$$stage/metrics.jsonl | sed "s/^{/{\"stage\": \"$$stage\", /"; \
	done > docs/results/bundled-stages.jsonl

# Whole documents: a name is new once per document
$(WORK)/spelling/%: $(WORK)/text/%.train.txt $(WORK)/gaps/all_results.json
	$(DNTM) data build $< --documents blank-line --vocabulary-of $(WORK)/gaps --lower-case \
		--fractions .98 .02 0 --overwrite --output-dir $@

$(WORK)/text/%.train.txt: $(DATA)/text/%.txt.gz
	mkdir -p $(@D)
	zcat $< | awk -v held=$(HELD_$*) -v name=$(@D)/$* 'BEGIN { RS = ""; ORS = "\n\n" } { text[NR] = $$0 } \
		END { for (i = 1; i <= NR; i++) print text[i] > (name (i > NR - held ? ".held.txt" : ".train.txt")) }'

# Odd documents are read in the first stage, some of the even ones in the last
$(WORK)/text/%.odd.txt: $(WORK)/text/%.train.txt
	awk 'BEGIN { RS = ""; ORS = "\n\n" } NR % 2 == 1' $< > $@

$(WORK)/text/%.even.txt: $(WORK)/text/%.train.txt
	awk 'BEGIN { RS = ""; ORS = "\n\n" } NR % 2 == 0' $< > $@

# What a rare word means: first single gaps, then words drawn by type with one to six sentences
PRETRAIN = $(DNTM) pretrain --recipe naming --text $(TEXTS:%=$(WORK)/text/%.train.txt) \
	--vectors $(VECTORS) --output-dir $(@D) $(RESUME)

$(WORK)/gaps/all_results.json: $(TEXTS:%=$(WORK)/text/%.train.txt) | install
	$(PRETRAIN)

# The learning rate falls to 1 % of its maximum twice
BY_TYPE = --model.merging attention --training.mentions 6 --training.batch 140 \
	--training.learning-rate 1e-3

$(WORK)/types/all_results.json: $(WORK)/gaps/all_results.json
	$(PRETRAIN) --start-from $(WORK)/gaps $(BY_TYPE) --training.iterations 9000

$(WORK)/encoder/all_results.json: $(WORK)/types/all_results.json
	$(PRETRAIN) --start-from $(WORK)/types $(BY_TYPE) --training.iterations 7000

# The licenses of the genres left out of OntoGUM forbid commercial use
$(WORK)/parts/ontogum: $(WORK)/gaps/all_results.json
	$(BUILD) ontogum --from $(DATA)/ontogum --output-dir $@ \
		--leave-out 'GUM_essay*' 'GUM_fiction*' 'GUM_letter*' 'GUM_podcast*' 'GUM_whow*'

# The novels left out are among the held-out documents of text/
$(WORK)/parts/litbank: $(WORK)/gaps/all_results.json
	$(BUILD) litbank --from $(DATA)/litbank --leave-out '974_*' '9830_*' --output-dir $@

$(WORK)/parts/craft: $(WORK)/gaps/all_results.json
	$(BUILD) $(DATA)/craft/train.jsonl.gz --output-dir $@

# The genres left out are excerpts of articles in text/, some of which are held out
$(WORK)/parts/amalgum: $(WORK)/gaps/all_results.json
	$(BUILD) $(DATA)/amalgum/amalgum.jsonl.gz --leave-out 'academic/*' 'interview/*' 'news/*' \
		--fractions .97 .03 0 --output-dir $@

$(WORK)/parts/%-odd: $(WORK)/text/%.odd.txt $(WORK)/gaps/all_results.json
	$(BUILD) $< --documents blank-line --fractions $(or $(SPLIT_$*),1 0 0) --output-dir $@

$(WORK)/parts/%-even: $(WORK)/text/%.even.txt $(WORK)/gaps/all_results.json
	$(BUILD) $< --documents blank-line --fractions $(or $(SPLIT_$*),1 0 0) --limit $(LAST_$*) \
		--output-dir $@

JOIN = $(DNTM) data join $| --vocabulary-of $(WORK)/parts/ontogum --output-dir $@

$(WORK)/dataset-odd: | $(MARKED:%=$(WORK)/parts/%) $(TEXTS:%=$(WORK)/parts/%-odd)
	$(JOIN)

$(WORK)/dataset-even: | $(MARKED:%=$(WORK)/parts/%) $(TEXTS:%=$(WORK)/parts/%-even)
	$(JOIN)

LAST := ontogum litbank craft wikinews-even novels-even academic-even

$(WORK)/dataset-last: | $(LAST:%=$(WORK)/parts/%)
	$(JOIN)

# The core is trained without a memory; word vectors stay as they are in all stages
TRAIN = $(DNTM) train --recipe naming --seed 1 --output-dir $(@D) $(RESUME)

$(WORK)/core/all_results.json: | $(WORK)/dataset-odd
	$(TRAIN) --dataset $(WORK)/dataset-odd --vectors $(VECTORS) --model.variant A \
		--model.extensions salience unseen-pooling --training.freeze x.words --training.validations 6

# The pointer is added, and then the memory. The static baseline is trained on without it
STATIC_PARTS = --model.variant A --model.extensions salience unseen-pooling pointer \
	--training.freeze x.words

$(WORK)/pointer/all_results.json: $(WORK)/core/all_results.json | $(WORK)/dataset-even
	$(TRAIN) --dataset $(WORK)/dataset-even --start-from $(WORK)/core $(STATIC_PARTS) \
		--training.learning-rate 1e-3

$(WORK)/static/all_results.json: $(WORK)/pointer/all_results.json | $(WORK)/dataset-last
	$(TRAIN) --dataset $(WORK)/dataset-last --start-from $(WORK)/pointer $(STATIC_PARTS) \
		--training.learning-rate 1e-3

$(WORK)/dynamic/all_results.json: $(WORK)/pointer/all_results.json $(WORK)/encoder/all_results.json \
		| $(WORK)/dataset-last
	$(TRAIN) --dataset $(WORK)/dataset-last --start-from $(WORK)/pointer \
		--pretrained $(WORK)/encoder --model.variant C --training.freeze x.words memory \
		--training.learning-rate 1e-3

# Results of the bundled model on texts that it was not trained on
RESULTS  := docs/results
STATIC   := $(BUNDLED)/static
TESTED    = $(DNTM) data build --max-sentences 28 --vocabulary-of default --lower-case --overwrite
COMPARED  = $(DNTM) evaluate $(BUNDLED) $(STATIC) --no-records --against $(STATIC)
MEASURED  = $(BIN)/python -m benchmarks

bundled-results: | install
	$(TESTED) ontogum --from $(DATA)/ontogum --output-dir $(WORK)/test/ontogum
	$(TESTED) litbank --from $(DATA)/litbank --output-dir $(WORK)/test/litbank
	$(TESTED) $(DATA)/craft/dev.jsonl.gz --fractions 0 0 1 --output-dir $(WORK)/test/craft
	$(COMPARED) --dataset $(WORK)/test/ontogum --split test --by-document $(RESULTS)/bundled-ontogum-documents.csv
	$(COMPARED) --dataset $(WORK)/test/litbank --split dev --by-document $(RESULTS)/bundled-litbank-documents.csv
	$(COMPARED) --dataset $(WORK)/test/craft --split test --by-document $(RESULTS)/bundled-craft-documents.csv
	$(DNTM) evaluate-meaning default --text $(TEXTS:%=$(WORK)/text/%.held.txt) \
		--fit $(TEXTS:%=$(WORK)/text/%.train.txt) --json $(RESULTS)/meaning.json
	$(MEASURED).names $(WORK)/text/wikinews.held.txt --counted $(TEXTS:%=$(WORK)/text/%.train.txt) \
		--json $(RESULTS)/bundled-names.json
	mkdir -p $(WORK)/news/train $(WORK)/news/dev
	cp $(WORK)/text/wikinews.train.txt $(WORK)/news/train
	cp $(WORK)/text/wikinews.held.txt $(WORK)/news/dev
	$(DNTM) data build $(WORK)/news --documents blank-line --vocabulary-of default --lower-case --overwrite \
		--output-dir $(WORK)/test/news
	$(DNTM) evaluate default --dataset $(WORK)/test/news --open-vocabulary \
		--json $(RESULTS)/bundled-open-vocabulary.json
	$(MEASURED).blimp $(DATA)/benchmarks/blimp.jsonl.gz --json $(RESULTS)/bundled-blimp.json
	$(MEASURED).lambada $(DATA)/benchmarks/lambada-dev.txt.gz --sample 1500 --json $(RESULTS)/bundled-lambada.json
	$(MEASURED).invented_words
	$(MAKE) tour
