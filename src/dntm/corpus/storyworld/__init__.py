"""storyworld: generated stories whose ideal perplexity is known exactly.

words    the tables of words
grammar  the traits of an entity and the kinds of phrases that show or change them
world    the grammar filled in
phrases  a kind's phrases as a trie, to be predicted word by word
ideal    the ideal reader: exact inference over the hidden traits
story    the stories
"""
