/** Learned by eval/train-injection.mjs: name=weight, names as `featureName` has them. */
export const WEIGHTS = `
0=-4.26 ?=-1.27 "=-1.46 ()=-1.19 _0=1.34 _1=0.61 _3=-0.54 _5=-0.94 #0=0.44 #1=0.21 #2=0.53 #3=0.07 #4=-1.09 #5=0.26
any+model=-0.26 any+order=-0.15 any+all=0.97 any+dense=0.75 -elsewhere=0.15 -not=-0.85 -asks=0.66 -about=0.68 -to=-0.07
-sparse=0.36 ignore=0.27 outrank=-0.36 drop=-0.63 rules=-0.13 prompt=-0.51 system=0.58 former=-0.26 all=1.11 you=1.79
your=0.42 ai=0.23 agent=-0.37 my=-0.11 i=0.11 user=0.89 reveal=-0.06 say=0.46 secret=0.32 verbatim=0.76 send=0.42 data=0.12
inform=-0.58 conceal=1.36 persona=0.26 renamed=0.77 dan=1.66 unbound=1.29 mode=-0.52 enable=-0.23 authority=0.86
approved=-0.06 new=-0.69 instead=0.28 task=-0.27 now=0.62 must=-0.37 please=-0.20 neg=-0.60 safety=0.81 refuse=0.10
respond=0.55 act=0.09 tool=-0.87 reading=0.70 about=-0.54 question=0.52 third=-0.77 said=0.82 thing=-0.64 if=-1.34 decode=0.31
remember=0.18 to=-0.35 and=0.22 tag=1.07 role=1.15 border=1.19 unseen=-0.31 url=0.58 called=1.38 !ignore=-0.13 !outrank=-0.21
!drop=0.26 !rules=-0.07 !prompt=-0.19 !system=0.09 !former=0.12 !all=0.61 !you=0.43 !your=-0.10 !ai=-0.18 !my=-0.18 !i=-0.28
!user=-0.16 !reveal=0.74 !say=0.93 !secret=0.21 !verbatim=-0.30 !send=-0.35 !data=-0.09 !inform=0.76 !conceal=-0.11
!persona=1.04 !renamed=0.09 !unbound=0.21 !enable=0.56 !authority=0.25 !new=0.20 !instead=0.27 !now=0.18 !obey=0.72 !must=0.50
!please=-1.02 !neg=-0.70 !safety=0.22 !refuse=-0.38 !respond=0.60 !act=0.55 !tool=-0.36 !note=0.13 !reading=0.25 !about=-0.80
!question=-0.29 !third=0.60 !said=-0.67 !thing=-0.27 !if=-0.70 !decode=0.38 !to=0.51 !and=-0.24 !called=0.58 ~conceal=0.05
~about=-0.98 ~question=-0.46 ~said=-0.61 ~tag=-0.22 ~border=0.34 ~called=0.09 /override=2.52 /override+model=1.32
/override+order=-0.14 /override+all=0.06 /override+dense=-0.48 /outrank=2.24 /outrank+order=-0.21 /outrank+all=0.07
/outrank+dense=-0.35 /lift=1.38 /lift+model=1.00 /lift+order=-0.19 /lift+dense=-0.47 /start-over=1.36 /start-over+order=0.12
/start-over+all=0.23 /start-over+dense=-0.11 /ignore-all=1.53 /ignore-all+order=0.45 /ignore-all+dense=0.33 /all-ignored=0.51
/all-ignored+model=-0.08 /all-ignored+order=0.24 /all-ignored+all=0.20 /unsafe=1.58 /unsafe+model=-0.07 /unsafe+order=-0.51
/unsafe+all=-0.29 /without-rules=1.07 /without-rules+model=0.46 /without-rules+order=-0.68 /without-rules+all=0.39
/without-rules+dense=0.50 /disobey=2.00 /disobey+model=-0.31 /disobey+order=-0.07 /disobey+dense=-0.40 /ignore-user=1.00
/ignore-user+model=-0.64 /ignore-user+order=0.06 /ignore-user+dense=-0.05 /new-rules=1.46 /new-rules+model=-0.06
/new-rules+order=0.26 /new-rules+dense=-0.34 /your-rules=2.29 /your-rules+model=0.16 /your-rules+order=-0.47
/your-rules+dense=1.17 /former-rules=1.14 /former-rules+model=0.15 /former-rules+order=0.28 /former-rules+all=-0.11
/former-rules+dense=0.45 /told=1.03 /told+model=0.08 /told+order=-0.16 /told+dense=0.23 /obey-me=1.82 /obey-me+model=0.20
/obey-me+order=0.17 /obey-me+dense=0.14 /authority=0.52 /authority+model=-0.06 /authority+order=-0.07 /authority+dense=-0.58
/claimed=0.94 /claimed+model=0.30 /claimed+order=-0.40 /approved=0.94 /approved+model=0.49 /approved+dense=-0.66 /my-word=1.22
/my-word+order=0.47 /my-word+dense=0.35 /persona=1.50 /persona+model=-0.16 /persona+order=0.09 /persona+dense=0.11
/persona-ai=1.80 /persona-ai+order=0.34 /persona-ai+dense=-0.47 /renamed=2.14 /renamed+order=0.06 /renamed+dense=0.60
/unbound=1.63 /unbound+model=0.07 /unbound+order=0.41 /unbound+dense=-0.47 /mode=1.25 /mode+model=-0.59 /mode+order=0.50
/mode+dense=0.12 /leak=1.75 /leak+model=0.60 /leak-system=1.94 /leak-system+model=0.18 /leak-system+order=-0.49
/leak-system+dense=-0.11 /leak-rules=1.42 /leak-rules+model=-0.36 /leak-rules+order=0.06 /leak-rules+all=-0.36
/leak-rules+dense=-0.30 /leak-text=1.46 /leak-text+model=0.27 /leak-text+order=0.45 /leak-text+all=0.20 /leak-text+dense=-0.64
/verbatim=1.60 /verbatim+dense=0.09 /give-away=1.04 /give-away+model=-0.41 /give-away+order=0.92 /give-away+all=-0.41
/give-away+dense=-0.19 /exfiltrate=1.42 /exfiltrate+order=-0.15 /exfiltrate+all=-0.18 /exfiltrate+dense=-0.15 /to-address=0.67
/to-address+model=0.38 /to-address+all=0.06 /to-address+dense=-0.44 /conceal=1.65 /conceal+order=-0.12 /conceal+dense=0.28
/keep-from=1.86 /keep-from+order=0.19 /keep-from+dense=-0.14 /not-tell=1.08 /not-tell+model=-0.56 /not-tell+order=0.12
/not-tell+dense=0.29 /address=1.33 /address+model=0.08 /address+order=-0.42 /address+dense=-0.46 /address-agent=1.02
/address-agent+model=-0.25 /address-agent+order=-0.22 /address-agent+dense=-0.32 /called=1.65 /called+model=-0.35
/called+order=0.05 /called+dense=-0.28 /reader=2.35 /reader+model=-0.29 /reader+order=0.20 /reader+dense=0.37 /ai-must=1.40
/ai-must+model=-0.54 /ai-must+order=-0.78 /ai-must+dense=-0.16 /you-must=0.53 /you-must+model=0.20 /you-must+order=-0.13
/you-must+dense=0.13 /use-tool=0.61 /use-tool+model=0.10 /use-tool+order=0.10 /use-tool+dense=0.14 /not-refuse=2.28
/not-refuse+model=-0.17 /not-refuse+order=-0.14 /not-refuse+dense=0.49 /answer-with=0.91 /answer-with+model=-0.15
/answer-with+order=0.30 /answer-with+dense=0.15 /instead=0.12 /instead+model=-0.10 /instead+order=-0.60 /instead+dense=-0.19
/decode=1.88 /decode+model=0.16 /decode+order=0.32 /decode+dense=0.34 /remember=0.97 /remember+all=0.20 /remember+dense=0.11
/marked=1.16 /marked+all=0.12 /marked+dense=-0.08 -/override=0.25 -/lift=0.75 -/start-over=-0.45 -/ignore-all=-0.36
-/all-ignored=-0.32 -/without-rules=0.36 -/disobey=-0.68 -/new-rules=0.23 -/your-rules=0.26 -/former-rules=0.32 -/told=1.11
-/obey-me=0.59 -/authority=0.19 -/my-word=0.36 -/persona=-0.34 -/persona-ai=-0.44 -/renamed=-0.09 -/unbound=-0.09 -/mode=0.14
-/leak=0.13 -/leak-system=-0.49 -/leak-rules=-0.56 -/leak-text=-0.10 -/verbatim=0.85 -/give-away=0.26 -/exfiltrate=0.09
-/conceal=-0.19 -/keep-from=0.29 -/not-tell=0.17 -/called=0.32 -/reader=0.13 -/ai-must=-0.43 -/you-must=-0.38 -/use-tool=-0.22
-/not-refuse=1.10 -/instead=-0.13 -/decode=-0.16 -/marked=0.30 ~/override=-0.05 ~/outrank=-0.14 ~/lift=-0.29
~/start-over=-0.07 ~/ignore-all=0.13 ~/all-ignored=-0.17 ~/without-rules=-0.46 ~/ignore-user=-0.31 ~/new-rules=0.14
~/your-rules=-0.15 ~/former-rules=-0.36 ~/authority=0.40 ~/claimed=-0.07 ~/approved=-0.23 ~/persona-ai=-0.07 ~/renamed=0.08
~/leak-system=-0.24 ~/give-away=0.47 ~/exfiltrate=0.28 ~/to-address=-0.22 ~/keep-from=-0.16 ~/not-tell=-0.47 ~/address=0.17
~/called=0.09 ~/reader=0.13 ~/ai-must=-0.12 ~/use-tool=-0.15 ~/not-refuse=0.35 ~/answer-with=-0.06 ~/instead=0.23
~/marked=0.45
`;
