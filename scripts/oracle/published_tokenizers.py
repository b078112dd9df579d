#!/usr/bin/env python3
# Small tokenizers of every kind, trained here, with ids by `tokenizers`: data for tests/data/tokenizer_json.
import json, sys, os
from tokenizers import Tokenizer, models, trainers, normalizers, pre_tokenizers, processors, decoders, AddedToken, Regex
corpus = ["The quick brown fox jumps over the lazy dog. It's 12345 o'clock, isn't it?",
 "Größe, café, naïve, déjà vu, Ελληνικά, Русский, 日本語, 한국어, ﬁne ﬂow, Ｆｕｌｌ", "def f(x):\n    return x ** 2  # tab\there\n\n\n",
 "one two three four five six seven eight nine ten " * 3, "don't we'll they've I'D HE'S"]*3
texts = ["", " ", "Hello", "Hello, world!", " leading", "trailing ", "two  spaces", "tab\tand\nline\r\nend\n\n", "Größe CAFÉ naïve", "cafe\u0301 e\u0301\u0301 a\u0323\u0307 A\u030a",
 "ﬁne ﬂow Ｆｕｌｌ ① ½ Å", "日本語 한국어 각 \u1100\u1161\u11a8", "12345 3.14", "don't WE'LL I'\u017f they'd 'S", "x\u200by \ufeffz \u00a0q\u3000r", "<s>in text</s> [MASK] [SEP]x[CLS] <mask>  <a> <b>",
 "emoji 😀👍🏽 done", "\u0130stanbul STRASSE ß ΑΣ", "def f(x):\n    return x ** 2", "\u0344 \u0958 \u2126 \ufb1d", "supercalifragilisticexpialidocious"*4, "a"*120, "!?.;:'\"()[]{}$+<=>^`|~", "_under_score snake_case", "\u0001\u0002 control \u007f", "\U0001d400 math \u2460", "ʰ ︎️ ﷺ", "Καλημέρα ΚΌΣΜΕ"]
sp = ["<s>","</s>","<unk>","<mask>","[MASK]","[SEP]","[CLS]","[UNK]","[PAD]"]
out = {}
def add(name, t):
    cases=[]
    for s in texts:
        e=t.encode(s, add_special_tokens=False); f=t.encode(s)
        cases.append({"text":s,"ids":e.ids,"ids_full":f.ids,"decoded":t.decode(e.ids,skip_special_tokens=False)})
    out[name]={"tokenizer":json.loads(t.to_str()),"cases":cases}
def bpe(norm, pre, dec, extra=None, **kw):
    t=Tokenizer(models.BPE(**kw)); 
    if norm: t.normalizer=norm
    if pre: t.pre_tokenizer=pre
    tr=trainers.BpeTrainer(vocab_size=420, special_tokens=["<unk>","<s>","</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if extra=="bytes" else [], show_progress=False)
    t.train_from_iterator(corpus,tr)
    if dec: t.decoder=dec
    return t
B=pre_tokenizers.ByteLevel
t=bpe(None,B(add_prefix_space=False),decoders.ByteLevel(),"bytes"); add("gpt2",t)
t=bpe(None,B(add_prefix_space=True),decoders.ByteLevel(),"bytes")
t.post_processor=processors.RobertaProcessing(("</s>",2),("<s>",1)); t.add_special_tokens([AddedToken("<mask>",lstrip=True)]); add("roberta",t)
l3=Regex(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
t=bpe(normalizers.NFC(),pre_tokenizers.Sequence([pre_tokenizers.Split(l3,"isolated"),B(add_prefix_space=False,use_regex=False)]),decoders.ByteLevel(),"bytes"); t.add_tokens([AddedToken("<a>",normalized=True),AddedToken("<b>",single_word=True,rstrip=True,lstrip=True)]); add("llama3-nfc",t)
ds=pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"\p{N}{1,3}"),"isolated"),pre_tokenizers.Split(Regex("[一-龥぀-ゟ゠-ヿ]+"),"isolated"),pre_tokenizers.Split(Regex("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"),"isolated"),B(add_prefix_space=False,use_regex=False)])
t=bpe(None,ds,decoders.ByteLevel(),"bytes"); add("deepseek3",t)
t=bpe(normalizers.Sequence([normalizers.NFKC(),normalizers.Lowercase()]),pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),pre_tokenizers.Punctuation("contiguous"),pre_tokenizers.Metaspace(prepend_scheme="first")]),decoders.Metaspace(prepend_scheme="first"),unk_token="<unk>",fuse_unk=True); add("metaspace-first",t)
def unigram(norm,pre,dec,**kw):
    t=Tokenizer(models.Unigram()); t.normalizer=norm; t.pre_tokenizer=pre; t.decoder=dec
    t.train_from_iterator(corpus,trainers.UnigramTrainer(vocab_size=260,special_tokens=["<s>","<pad>","</s>","<unk>"],unk_token="<unk>",show_progress=False))
    return t
t=unigram(normalizers.Sequence([normalizers.Nmt(),normalizers.NFKC(),normalizers.Replace(Regex(" {2,}")," ")]),pre_tokenizers.Metaspace(),decoders.Metaspace())
t.post_processor=processors.TemplateProcessing(single="<s> $A </s>",pair="<s> $A </s> $B </s>",special_tokens=[("<s>",0),("</s>",2)]); add("xlmr-like",t)
t=unigram(normalizers.NFKD(),pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(),pre_tokenizers.Metaspace(prepend_scheme="always",split=False)]),decoders.Metaspace()); add("t5-like",t)
def wordpiece(norm,pre):
    t=Tokenizer(models.WordPiece(unk_token="[UNK]")); t.normalizer=norm; t.pre_tokenizer=pre; t.decoder=decoders.WordPiece(cleanup=False)
    t.train_from_iterator(corpus,trainers.WordPieceTrainer(vocab_size=300,special_tokens=["[PAD]","[UNK]","[CLS]","[SEP]","[MASK]"],show_progress=False))
    t.post_processor=processors.BertProcessing(("[SEP]",3),("[CLS]",2)); return t
add("bert-uncased",wordpiece(normalizers.BertNormalizer(),pre_tokenizers.BertPreTokenizer()))
add("bert-cased",wordpiece(normalizers.BertNormalizer(lowercase=False),pre_tokenizers.BertPreTokenizer()))
add("wordpiece-whitespace",wordpiece(normalizers.Sequence([normalizers.NFD(),normalizers.StripAccents(),normalizers.Strip()]),pre_tokenizers.Whitespace()))
t=bpe(normalizers.Sequence([normalizers.Prepend("▁"),normalizers.Replace(" ","▁")]),None,decoders.Sequence([decoders.Replace("▁"," "),decoders.ByteFallback(),decoders.Fuse(),decoders.Strip(" ",1,0)]),unk_token="<unk>",fuse_unk=True,byte_fallback=True)
j=json.loads(t.to_str()); n=len(j["model"]["vocab"])
for b in range(256): j["model"]["vocab"]["<0x%02X>"%b]=n+b
t=Tokenizer.from_str(json.dumps(j)); add("spm-like",t)
t=bpe(None,pre_tokenizers.Split(Regex(r"\s"),"merged_with_next"),None,unk_token="<unk>"); add("split-next",t)
t=bpe(None,pre_tokenizers.Split("o","merged_with_previous"),None,unk_token="<unk>"); add("split-previous",t)
json.dump(out,open(sys.argv[1],"w"),ensure_ascii=True,separators=(",",":"))
print({k:len(v["cases"]) for k,v in out.items()}, os.path.getsize(sys.argv[1]))
