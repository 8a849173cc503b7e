/** Learned by eval/train-injection.mjs: name=weight, names as `featureName` has them. */
export const WEIGHTS = `
0=-5.54 ?=-1.39 "=-1.35 ()=-1.86 _0=0.80 _1=0.77 _3=-0.64 _4=-0.67 _5=-0.92 #0=-0.06 #1=-0.28 #2=0.12 #3=0.27 #4=-0.61 #5=0.10
any=-0.23 any+order=0.67 any+all=0.70 any+dense=1.05 -elsewhere=0.25 -not=-0.77 -asks=0.34 -about=0.07 -told=0.09 -to=0.17
-sparse=0.48 ignore=0.15 outrank=-0.21 drop=0.25 rules=0.11 prompt=-0.49 system=0.74 former=-0.41 all=1.43 you=1.04 your=0.35
ai=-0.09 agent=-0.05 my=-0.24 user=0.61 reveal=0.14 say=0.62 secret=0.30 verbatim=1.33 send=-0.09 data=0.18 inform=-0.41
conceal=1.31 persona=0.31 renamed=0.70 dan=1.62 unbound=1.43 mode=-0.29 enable=-0.18 authority=0.94 approved=0.05 task=0.21
now=0.39 obey=0.24 must=-0.57 please=-0.26 neg=-0.75 safety=0.57 refuse=0.11 respond=0.33 act=-0.08 tool=-0.67 note=-0.24
reading=0.39 about=-1.24 question=0.57 third=-0.36 said=0.31 thing=-0.78 if=-1.42 remember=0.11 to=-0.50 and=-0.22 tag=1.49
role=0.91 border=0.73 unseen=-0.50 url=0.37 called=1.16 !ignore=0.23 !drop=0.17 !rules=0.35 !prompt=-0.17 !system=0.10
!former=-0.05 !all=0.30 !you=0.50 !your=-0.62 !ai=-0.39 !agent=0.27 !my=0.07 !i=-0.16 !user=-0.39 !reveal=0.55 !say=0.70
!secret=0.29 !verbatim=-0.12 !send=-0.13 !data=-0.06 !inform=-0.06 !persona=0.61 !renamed=0.13 !unbound=0.14 !mode=0.20
!authority=0.25 !approved=-0.08 !new=0.69 !instead=0.11 !task=-0.10 !obey=0.42 !must=0.34 !please=-0.88 !neg=-0.60
!safety=0.22 !refuse=0.17 !respond=0.13 !act=0.82 !tool=-0.26 !note=0.12 !reading=0.23 !about=-0.13 !question=-0.44
!third=0.12 !said=0.13 !thing=-0.61 !if=-0.40 !to=0.49 !and=-0.58 !called=0.36 ~conceal=-0.05 ~about=-1.85 ~question=-0.17
~said=-0.35 /override=2.66 /override+model=0.61 /override+order=0.09 /override+all=-0.06 /override+dense=-0.25 /outrank=2.47
/outrank+all=-0.12 /outrank+dense=-0.13 /lift=1.31 /lift+model=0.83 /lift+order=-0.08 /lift+dense=-0.71 /start-over=1.44
/start-over+model=0.10 /start-over+dense=-0.26 /ignore-all=1.32 /ignore-all+model=-0.34 /ignore-all+order=0.35
/ignore-all+dense=0.12 /all-ignored=0.95 /all-ignored+model=-0.12 /all-ignored+order=0.29 /all-ignored+all=0.19
/all-ignored+dense=0.21 /unsafe=1.96 /unsafe+model=-0.21 /unsafe+order=-0.25 /unsafe+all=-0.14 /unsafe+dense=-0.08
/without-rules=1.38 /without-rules+model=0.43 /without-rules+order=-0.58 /without-rules+all=0.30 /disobey=2.06
/disobey+model=-0.06 /disobey+order=-0.12 /disobey+dense=-0.34 /ignore-user=1.25 /ignore-user+model=-0.06
/ignore-user+order=0.21 /ignore-user+dense=-0.15 /new-rules=1.38 /new-rules+model=-0.23 /new-rules+order=-0.06
/new-rules+dense=-0.43 /your-rules=1.85 /your-rules+model=0.34 /your-rules+order=-0.30 /your-rules+dense=0.90
/former-rules=0.81 /former-rules+model=0.31 /former-rules+order=0.09 /told=1.06 /told+order=-0.12 /told+dense=0.38
/obey-me=1.73 /obey-me+model=0.11 /obey-me+dense=0.13 /authority=0.53 /authority+model=0.10 /authority+order=-0.20
/authority+dense=0.14 /claimed=0.99 /claimed+model=0.44 /claimed+order=-0.27 /claimed+dense=0.12 /approved=0.73
/approved+order=-0.12 /approved+dense=-0.37 /my-word=0.89 /my-word+model=0.05 /my-word+order=0.14 /my-word+dense=0.07
/persona=2.18 /persona+model=0.10 /persona+order=0.56 /persona+dense=0.11 /persona-ai=1.24 /persona-ai+model=-0.34
/persona-ai+order=0.11 /persona-ai+dense=-0.08 /renamed=2.21 /renamed+order=0.21 /renamed+dense=0.38 /unbound=2.11
/unbound+model=0.19 /unbound+order=0.35 /unbound+dense=-0.10 /mode=1.33 /mode+model=-0.81 /mode+order=0.49 /mode+dense=0.25
/leak=1.96 /leak+model=0.81 /leak-system=2.41 /leak-system+model=0.36 /leak-system+dense=-0.31 /leak-rules=1.59
/leak-rules+model=-0.05 /leak-rules+order=0.47 /leak-rules+all=-0.27 /leak-rules+dense=0.08 /leak-text=1.05
/leak-text+model=0.22 /leak-text+order=0.15 /leak-text+all=-0.13 /leak-text+dense=-0.34 /verbatim=1.68 /verbatim+dense=0.09
/give-away=1.06 /give-away+model=-0.45 /give-away+order=0.76 /give-away+all=-0.07 /give-away+dense=0.19 /exfiltrate=1.62
/exfiltrate+all=-0.06 /exfiltrate+dense=0.17 /to-address=0.89 /to-address+model=0.28 /to-address+order=-0.23
/to-address+dense=-0.16 /conceal=1.49 /conceal+model=-0.21 /conceal+order=0.15 /conceal+all=0.06 /conceal+dense=-0.11
/keep-from=1.56 /keep-from+model=-0.20 /keep-from+dense=-0.48 /not-tell=0.79 /not-tell+model=-0.57 /not-tell+order=-0.23
/address=1.50 /address+dense=-0.08 /address-agent=1.29 /address-agent+model=0.07 /address-agent+order=0.09 /called=1.62
/called+model=-0.32 /called+dense=-0.33 /reader=2.19 /reader+model=-0.06 /reader+order=0.23 /reader+dense=0.22 /ai-must=1.48
/ai-must+order=-0.30 /ai-must+dense=0.15 /you-must=0.40 /you-must+model=0.21 /you-must+order=-0.26 /use-tool=0.40
/use-tool+model=-0.14 /use-tool+order=-0.19 /use-tool+dense=-0.16 /not-refuse=2.31 /not-refuse+model=-0.20
/not-refuse+order=0.31 /not-refuse+dense=0.46 /answer-with=0.87 /answer-with+order=0.15 /answer-with+dense=0.08 /instead=0.17
/instead+model=0.24 /instead+order=-0.59 /instead+dense=0.10 /decode=1.63 /decode+model=0.12 /decode+order=0.12
/decode+dense=0.13 /remember=0.91 /remember+all=0.12 /marked=0.94 /marked+model=0.12 /marked+dense=-0.28 -/override=-0.44
-/lift=0.48 -/start-over=-0.30 -/ignore-all=-0.39 -/all-ignored=-0.29 -/unsafe=-0.21 -/without-rules=0.13 -/disobey=-0.22
-/ignore-user=-0.21 -/your-rules=0.11 -/former-rules=0.33 -/told=-0.10 -/obey-me=0.19 -/authority=0.09 -/my-word=0.26
-/persona=-0.05 -/persona-ai=-0.18 -/mode=-0.08 -/leak-system=-0.33 -/leak-rules=0.15 -/leak-text=-0.30 -/verbatim=0.19
-/give-away=0.20 -/to-address=0.30 -/keep-from=0.10 -/not-tell=0.08 -/address=0.19 -/address-agent=0.21 -/called=0.26
-/ai-must=-0.21 -/you-must=-0.09 -/use-tool=-0.06 -/not-refuse=0.63 -/answer-with=0.11 -/marked=0.09 ~/override=-0.11
~/lift=-0.14 ~/start-over=-0.14 ~/unsafe=-0.07 ~/ignore-user=-0.18 ~/your-rules=-0.10 ~/former-rules=-0.25 ~/told=0.15
~/authority=0.35 ~/approved=0.13 ~/persona=-0.06 ~/renamed=-0.37 ~/leak-system=-0.17 ~/give-away=0.51 ~/exfiltrate=0.12
~/to-address=-0.17 ~/conceal=0.08 ~/keep-from=-0.11 ~/not-tell=0.05 ~/address-agent=0.09 ~/ai-must=-0.34 ~/use-tool=-0.15
~/not-refuse=0.14 ~/answer-with=0.34 ~/instead=0.30 ~/marked=-0.16 ignore>system=0.14 ignore>former=0.28 ignore>all=-0.27
ignore>your=-0.59 ignore>my=-0.08 ignore>i=-0.10 ignore>user=0.23 ignore>data=0.27 ignore>persona=-0.07 ignore>authority=0.37
ignore>new=-0.28 ignore>obey=-0.09 ignore>please=-0.14 ignore>neg=-0.23 ignore>safety=-0.06 ignore>refuse=-0.13
ignore>act=0.25 ignore>question=0.52 ignore>third=0.46 ignore>thing=-0.37 ignore>if=-0.07 ignore>to=0.08 outrank>system=0.07
outrank>all=-0.18 outrank>user=-0.07 outrank>authority=0.07 drop>ignore=-0.07 drop>drop=-0.07 drop>rules=-0.30
drop>former=-0.50 drop>you=0.21 drop>your=-0.35 drop>user=0.18 drop>data=-0.06 drop>persona=0.06 drop>task=0.32 drop>now=0.62
drop>please=0.16 drop>safety=-0.24 drop>third=-0.14 drop>thing=-0.20 drop>remember=0.12 drop>to=-0.09 drop>and=0.13
drop>url=0.06 rules>ignore=0.33 rules>outrank=0.07 rules>former=0.77 rules>all=0.14 rules>you=0.29 rules>your=0.51
rules>ai=-0.06 rules>my=-0.05 rules>user=0.37 rules>reveal=0.06 rules>say=0.25 rules>secret=0.06 rules>send=0.16
rules>data=-0.16 rules>persona=0.54 rules>mode=-0.16 rules>authority=0.54 rules>new=0.05 rules>now=0.10 rules>obey=-0.12
rules>must=-0.12 rules>please=0.06 rules>neg=-0.05 rules>safety=-0.27 rules>respond=0.11 rules>act=0.60 rules>question=-0.05
rules>said=-0.13 rules>thing=-0.31 rules>url=-0.15 prompt>my=0.05 prompt>reveal=-0.08 prompt>say=-0.05 prompt>inform=-0.23
prompt>act=-0.05 system>drop=0.16 system>your=0.05 system>i=0.12 system>say=0.38 system>verbatim=0.07 system>new=0.17
system>task=-0.15 system>please=-0.28 system>respond=-0.06 system>question=-0.09 system>said=0.55 system>thing=-0.27
system>if=-0.06 system>to=0.08 former>rules=-0.24 former>prompt=0.06 former>system=0.16 former>former=0.11 former>all=0.13
former>you=-0.35 former>your=0.08 former>my=0.40 former>user=-0.15 former>verbatim=0.11 former>send=-0.12
former>approved=-0.22 former>new=-0.13 former>safety=-0.08 former>respond=-0.09 former>act=0.16 former>note=-0.06
former>third=-0.34 former>thing=0.71 former>to=0.11 former>and=-0.16 all>ignore=0.21 all>drop=0.11 all>rules=0.07
all>prompt=-0.05 all>system=0.15 all>former=0.37 all>you=0.08 all>your=-0.07 all>ai=0.13 all>user=0.51 all>secret=-0.26
all>send=0.09 all>data=-0.15 all>conceal=-0.15 all>unbound=-0.26 all>new=-0.20 all>obey=0.08 all>safety=0.45 all>refuse=-0.21
all>respond=0.06 all>act=0.14 all>tool=0.14 all>third=0.29 all>said=-0.18 all>thing=-0.70 all>to=-0.07 all>and=0.14
you>ignore=-0.24 you>drop=0.56 you>rules=0.15 you>former=0.28 you>all=0.10 you>you=-0.06 you>your=0.08 you>ai=0.36 you>i=-0.25
you>say=-0.15 you>send=0.25 you>inform=-0.05 you>persona=-0.40 you>unbound=0.15 you>enable=-0.08 you>authority=-0.10
you>new=-0.13 you>task=0.16 you>now=-0.14 you>must=-0.10 you>neg=-0.31 you>refuse=-0.15 you>act=0.25 you>note=-0.16
you>thing=0.10 you>to=0.24 you>and=0.18 your>rules=0.27 your>prompt=0.13 your>system=0.81 your>former=-0.16 your>all=0.20
your>user=-0.15 your>secret=0.18 your>data=-0.40 your>persona=0.09 your>authority=0.74 your>new=-0.27 your>task=-0.17
your>must=-0.11 your>neg=-0.52 your>safety=0.10 your>respond=0.12 your>act=0.05 your>tool=-0.11 your>note=0.18
your>thing=-0.34 your>if=-0.08 your>and=-0.31 ai>ignore=0.27 ai>system=-0.15 ai>you=-0.09 ai>ai=0.27 ai>agent=-0.07
ai>reveal=-0.14 ai>send=0.20 ai>conceal=-0.32 ai>unbound=-0.26 ai>new=0.09 ai>now=0.16 ai>obey=-0.13 ai>must=0.19 ai>neg=0.13
ai>reading=0.20 ai>question=0.07 ai>third=-0.05 ai>said=-0.15 ai>thing=-0.15 ai>to=0.49 ai>and=-0.07 ai>called=-0.16
agent>ignore=-0.12 agent>rules=0.09 agent>you=-0.15 agent>ai=-0.11 agent>agent=0.31 agent>say=-0.07 agent>conceal=-0.18
agent>persona=0.16 agent>obey=-0.14 agent>neg=0.18 agent>act=0.30 agent>question=-0.11 agent>to=0.12 agent>and=0.09
agent>called=0.12 my>outrank=0.07 my>rules=0.37 my>system=0.14 my>former=-0.29 my>ai=-0.11 my>agent=-0.15 my>say=0.36
my>secret=0.10 my>data=-0.10 my>authority=-0.13 my>new=-0.06 my>now=-0.05 my>obey=0.08 my>neg=-0.13 my>tool=-0.08
my>question=0.40 my>said=0.06 my>thing=-0.22 my>to=0.06 i>ignore=0.29 i>drop=-0.05 i>rules=0.18 i>you=0.65 i>your=0.24
i>ai=-0.10 i>i=0.19 i>secret=0.32 i>data=0.17 i>authority=-0.20 i>approved=0.09 i>new=-0.08 i>task=-0.06 i>now=-0.10
i>must=-0.09 i>refuse=-0.26 i>act=-0.20 i>third=-0.17 i>said=-0.12 i>to=-0.10 i>and=0.11 user>drop=-0.13 user>prompt=-0.06
user>former=-0.12 user>ai=-0.15 user>i=0.23 user>verbatim=0.49 user>persona=-0.05 user>authority=-0.11 user>approved=0.25
user>new=0.17 user>must=-0.08 user>neg=-0.11 user>act=-0.08 user>tool=-0.10 user>question=-0.19 user>third=0.21 user>said=0.18
user>thing=0.13 user>to=0.11 user>and=0.31 reveal>prompt=-0.23 reveal>system=0.27 reveal>secret=-0.10 reveal>data=0.20
reveal>if=-0.06 say>rules=-0.10 say>prompt=-0.06 say>system=-0.26 say>former=-0.22 say>all=0.24 say>your=-0.42 say>i=0.09
say>user=0.29 say>verbatim=-0.09 say>data=0.23 say>inform=-0.20 say>persona=-0.07 say>authority=0.28 say>please=-0.06
say>neg=0.07 say>refuse=0.12 say>act=0.24 say>tool=-0.05 say>note=0.19 say>question=0.31 say>third=-0.16 say>said=-0.14
say>thing=0.37 say>and=-0.08 secret>rules=0.46 secret>thing=-0.19 secret>decode=0.10 secret>to=-0.11 verbatim>you=0.20
verbatim>say=0.31 verbatim>if=-0.24 send>system=-0.08 send>former=0.17 send>your=-0.19 send>user=-0.11 send>send=-0.17
send>data=0.15 send>dan=-0.08 send>mode=0.15 send>new=-0.07 send>now=-0.07 send>neg=0.06 send>about=0.09 send>thing=0.16
send>to=-0.11 send>and=-0.07 data>former=-0.08 data>all=0.07 data>you=0.49 data>your=0.13 data>my=-0.07 data>user=0.06
data>say=-0.26 data>send=-0.10 data>data=0.06 data>mode=-0.09 data>authority=-0.16 data>tool=-0.08 data>question=0.13
data>if=-0.13 data>to=-0.09 data>and=-0.21 inform>former=-0.07 inform>all=0.13 inform>you=-0.15 inform>ai=-0.09
inform>say=-0.24 inform>instead=-0.19 inform>safety=0.27 inform>act=-0.21 inform>and=-0.06 inform>url=0.21 conceal>user=-0.07
conceal>conceal=-0.12 conceal>third=0.12 conceal>and=-0.18 persona>ignore=-0.07 persona>rules=0.06 persona>all=-0.31
persona>you=-0.18 persona>agent=-0.08 persona>my=0.10 persona>user=-0.33 persona>unbound=0.18 persona>now=0.21
persona>please=0.63 persona>neg=-0.06 persona>refuse=0.10 persona>act=-0.08 persona>question=0.24 persona>thing=0.13
persona>if=0.20 persona>and=-0.22 renamed>ai=0.36 renamed>my=-0.42 renamed>unbound=0.05 renamed>mode=0.05
renamed>authority=-0.07 renamed>new=-0.14 renamed>respond=0.13 renamed>question=0.06 renamed>to=0.07 dan>agent=-0.08
dan>and=0.24 unbound>agent=0.07 unbound>i=0.06 unbound>neg=0.05 unbound>act=-0.09 unbound>third=-0.17 unbound>said=-0.29
mode>former=-0.27 mode>all=0.26 mode>you=0.11 mode>your=-0.08 mode>say=-0.10 mode>secret=-0.11 mode>unbound=0.05
mode>mode=0.25 mode>enable=0.21 mode>question=0.10 mode>to=-0.13 mode>and=-0.07 enable>your=-0.11 enable>dan=0.24
enable>mode=-0.22 enable>authority=-0.23 enable>act=-0.07 enable>thing=-0.19 authority>ignore=0.31 authority>outrank=-0.07
authority>drop=0.19 authority>rules=0.16 authority>you=-0.44 authority>your=0.07 authority>my=-0.14 authority>i=0.15
authority>user=-0.12 authority>say=0.10 authority>data=0.27 authority>authority=0.39 authority>approved=0.06
authority>new=-0.08 authority>now=-0.12 authority>must=-0.21 authority>safety=0.11 authority>act=-0.23 authority>tool=-0.10
authority>question=-0.10 authority>and=0.37 approved>former=0.28 approved>send=-0.07 approved>act=-0.09 approved>third=-0.22
approved>thing=-0.13 approved>to=0.25 approved>and=-0.14 new>outrank=-0.06 new>rules=0.15 new>former=0.37 new>all=-0.06
new>you=-0.18 new>your=0.51 new>my=0.32 new>i=0.06 new>user=-0.09 new>verbatim=-0.15 new>data=0.12 new>new=-0.06 new>task=0.09
new>neg=0.35 new>refuse=-0.07 new>respond=0.26 new>act=0.17 new>thing=-0.26 new>decode=0.11 new>to=-0.05 new>and=-0.12
instead>please=0.11 task>ai=0.06 task>agent=0.16 task>say=0.06 task>conceal=-0.12 task>authority=-0.06 task>must=-0.17
task>act=0.19 task>thing=-0.06 task>to=-0.19 task>and=0.25 now>drop=-0.12 now>all=-0.08 now>you=0.32 now>i=0.10 now>say=0.09
now>unbound=0.20 now>approved=0.07 now>new=-0.21 now>please=-0.10 now>respond=0.07 now>act=-0.26 now>question=0.09
now>said=0.27 now>to=-0.07 now>and=-0.11 obey>rules=-0.40 obey>former=0.23 obey>your=0.07 obey>my=0.14 obey>user=0.18
obey>data=-0.08 obey>new=0.11 obey>now=0.08 obey>please=-0.08 obey>safety=-0.19 obey>third=0.14 obey>said=-0.08
obey>thing=0.27 must>ignore=0.16 must>drop=-0.11 must>former=-0.15 must>all=-0.10 must>you=-0.09 must>your=0.13 must>ai=-0.34
must>agent=-0.18 must>reveal=0.16 must>say=0.31 must>secret=-0.11 must>inform=0.20 must>unbound=0.08 must>new=-0.09
must>now=0.05 must>obey=-0.21 must>must=-0.07 must>respond=-0.20 must>question=-0.08 must>to=0.38 must>and=-0.08 must>url=0.11
please>ignore=0.10 please>rules=-0.06 please>former=-0.11 please>all=0.16 please>say=-0.21 please>send=-0.12
please>persona=0.14 please>enable=0.14 please>please=0.15 please>neg=0.05 please>act=-0.37 please>if=0.14 please>to=0.18
please>and=-0.13 neg>ignore=-0.39 neg>drop=-0.21 neg>rules=-0.06 neg>system=0.13 neg>former=-0.17 neg>all=0.42 neg>your=0.42
neg>ai=-0.05 neg>reveal=-0.18 neg>say=-0.52 neg>send=-0.08 neg>inform=0.79 neg>approved=0.11 neg>new=-0.12 neg>must=-0.21
neg>please=-0.12 neg>neg=0.08 neg>safety=0.11 neg>refuse=0.91 neg>act=-0.17 neg>tool=-0.05 neg>note=0.07 neg>and=-0.15
safety>ignore=-0.13 safety>drop=0.23 safety>rules=-0.21 safety>say=0.06 safety>safety=0.09 safety>refuse=0.14
safety>thing=-0.17 safety>if=-0.11 safety>to=-0.24 refuse>rules=-0.21 refuse>former=-0.19 refuse>your=0.20 refuse>user=0.09
refuse>please=-0.06 refuse>question=0.09 refuse>third=-0.06 refuse>thing=0.13 refuse>to=-0.41 refuse>and=0.42 respond>all=0.35
respond>you=0.11 respond>user=-0.26 respond>unbound=0.10 respond>new=0.12 respond>now=-0.08 respond>obey=-0.07
respond>neg=0.18 respond>respond=0.41 respond>act=0.06 respond>about=0.30 respond>thing=-0.18 respond>to=-0.18
respond>and=-0.29 act>rules=-0.45 act>system=-0.86 act>former=-0.16 act>all=-0.73 act>you=-0.17 act>your=-0.28 act>agent=-0.08
act>i=-0.38 act>user=0.27 act>secret=0.25 act>verbatim=-0.11 act>send=0.26 act>conceal=0.19 act>unbound=-0.15
act>authority=0.18 act>new=-0.07 act>task=-0.14 act>now=-0.29 act>act=0.19 act>tool=-0.10 act>question=0.88 act>third=0.08
act>thing=0.55 act>if=-0.08 act>to=0.27 act>and=0.21 act>url=-0.28 tool>drop=-0.05 tool>former=0.09 tool>all=-0.17
tool>you=0.15 tool>i=-0.08 tool>user=-0.07 tool>secret=-0.11 tool>data=-0.09 tool>new=-0.06 tool>respond=-0.08 tool>act=-0.13
tool>to=-0.05 tool>and=-0.06 note>ignore=0.12 note>drop=0.22 note>all=-0.06 note>you=-0.14 note>your=-0.13 note>ai=-0.06
note>i=-0.08 note>user=-0.07 note>persona=-0.09 note>unbound=-0.19 note>new=0.14 note>now=0.07 note>neg=-0.07 note>act=-0.06
note>question=0.12 note>and=0.19 reading>ai=-0.09 reading>send=0.06 reading>please=-0.12 reading>thing=0.23 about>ignore=-0.13
about>i=0.30 about>act=0.06 about>about=-0.32 about>said=-0.06 about>to=-0.05 about>and=0.12 about>url=0.09
question>ignore=-0.07 question>drop=0.21 question>rules=0.18 question>system=-0.13 question>former=-0.08 question>all=0.06
question>you=0.17 question>ai=0.12 question>agent=-0.18 question>my=-0.11 question>say=-0.22 question>unbound=0.23
question>obey=0.15 question>must=0.20 question>please=-0.12 question>refuse=-0.11 question>act=-0.14 question>note=-0.18
question>about=-0.14 question>question=-0.32 question>third=0.07 question>thing=0.42 question>to=0.53 third>ignore=0.38
third>rules=-0.10 third>system=0.06 third>former=-0.16 third>all=-0.11 third>agent=0.11 third>i=-0.07 third>user=-0.13
third>say=-0.14 third>verbatim=0.46 third>data=-0.17 third>conceal=-0.07 third>authority=-0.18 third>now=0.18 third>obey=-0.06
third>must=0.29 third>neg=-0.07 third>safety=0.35 third>refuse=-0.23 third>about=0.19 third>said=0.40 third>thing=-0.15
third>to=0.15 third>and=0.29 third>url=0.11 said>ignore=-0.07 said>drop=0.25 said>prompt=-0.05 said>system=-0.09 said>all=0.12
said>you=0.57 said>your=0.18 said>ai=-0.11 said>agent=0.08 said>my=-0.13 said>i=-0.09 said>user=0.06 said>say=0.13
said>inform=-0.10 said>new=0.13 said>neg=0.08 said>act=0.22 said>about=-0.06 said>third=-0.22 said>to=-0.37 said>and=0.26
thing>ignore=-0.51 thing>outrank=0.07 thing>drop=-0.16 thing>former=-0.15 thing>all=0.41 thing>you=0.07 thing>your=0.20
thing>ai=0.55 thing>i=-0.25 thing>say=-0.31 thing>verbatim=0.28 thing>send=-0.09 thing>data=0.71 thing>conceal=0.06
thing>authority=0.29 thing>new=-0.44 thing>task=-0.27 thing>neg=0.15 thing>refuse=-0.11 thing>tool=-0.05 thing>said=-0.16
thing>thing=-0.55 thing>if=-0.28 thing>to=-0.22 thing>and=-0.54 thing>url=-0.06 if>you=-0.30 if>agent=-0.07 if>i=-0.16
if>user=-0.08 if>renamed=-0.12 if>enable=-0.07 if>task=-0.08 if>act=0.07 if>third=-0.21 if>thing=-0.07 decode>say=-0.05
decode>new=0.11 decode>third=0.10 remember>all=0.12 to>ignore=-0.15 to>rules=0.14 to>former=-0.05 to>all=-0.59 to>you=-0.14
to>your=-0.27 to>user=0.21 to>reveal=-0.21 to>secret=-0.07 to>send=-0.10 to>data=-0.13 to>conceal=0.29 to>persona=-0.21
to>unbound=0.24 to>enable=-0.09 to>authority=-0.09 to>new=-0.16 to>instead=0.10 to>obey=-0.14 to>neg=-0.08 to>refuse=0.34
to>act=-0.46 to>tool=0.51 to>note=-0.11 to>question=-0.15 to>third=-0.05 to>said=0.24 to>thing=0.49 to>to=-0.06 to>and=-0.15
to>url=0.36 and>ignore=-0.39 and>drop=-0.49 and>rules=-0.06 and>all=0.30 and>you=-0.28 and>ai=-0.19 and>my=0.31 and>i=0.43
and>user=-0.09 and>say=0.13 and>verbatim=0.19 and>send=-0.06 and>data=-0.10 and>inform=-0.24 and>persona=-0.07 and>mode=-0.14
and>new=-0.07 and>obey=0.33 and>must=0.20 and>neg=0.17 and>refuse=0.08 and>respond=0.09 and>act=0.47 and>note=-0.12
and>about=0.08 and>question=-0.27 and>third=0.19 and>said=-0.14 and>thing=0.14 and>to=0.20 and>and=-0.07 and>url=0.07
tag>drop=-0.22 tag>ai=0.13 tag>say=0.09 tag>new=0.32 tag>now=0.21 tag>act=-0.07 tag>thing=-0.17 role>you=-0.14 role>ai=0.08
role>i=-0.05 role>user=0.17 role>send=0.13 role>mode=-0.07 role>new=-0.08 role>act=0.16 border>authority=0.33 border>new=-0.39
unseen>ignore=-0.19 unseen>all=-0.10 unseen>ai=-0.35 unseen>say=-0.21 unseen>renamed=-0.07 unseen>neg=-0.09 unseen>act=-0.20
url>conceal=0.08 url>instead=0.05 url>third=0.13 url>and=0.17 url>url=-0.13 called>ignore=0.06 called>former=0.09
called>ai=-0.09 called>i=0.08 called>inform=0.21 called>act=-0.38 called>said=0.17 called>if=0.13 about0=0.22 about1=-0.14
about2=-1.00 about3=-0.52
`;

/** What words weigh: a signed byte each, times this. */
export const GRAM_STEP = 0.0102;
export const GRAM_WEIGHTS = `
AP/1//X9MQAAAOzyBQAJ6AAADwDr/gABAAD/AAAA/v/+A/sSGAgI/P8Jx+v/AA0nBu4A9/oAAAf+VwD+3/8AAAD1/QAAEt/3AP/+B/z1AAAAANsACdD0BQj2+v8AAQ
AIEQAB//8MAvoFAP4H7wUAAADq+/AaBfgIAPv/FQMA/v3+/f0R/fEAAAAMC//gAPgSBP8HAAv9BADvCAAU+wDzFvcD7gAJAfcPAQDuBuoA/wD1+/oAAAD4/vAh7gD2
9/AACgAA+gHg/voB8gD97vkf/Q4KFcsA//7++/P//f/z1wD/8v0AAP/99RMA/vIBAfX2/gEBCQD3AP8A//8H+fwABf0CAe//EfbS/gcAAvj+AP4CFP4CFg7wCBENAO
4A8fj9/gD///PyAPcA7AD+AzHs/vAB1////f4QAAQH+/3yAewRAPgP6QD+7OoWBP8ABfgAEAD4/wAl/fMA6gDs8f/z//4K+P7+/f//8P7wAPv++AD9+jPm/f0E+AAG
//IB/wj4Av4AAP8H/Pz9B/sRBRr/+v/5AAAb/RwA/QwHCvsA/yH9/QMABBH///kA7QAF//f/+f3zBAQXHQAn/wD7/f/vCAYGJA8B/wgA/fXrAP/xDP79+hQA7gL///
f/AAD+/wb/AP3yDNr2APoGAgAB0tHw/fXy/+X/+v7//vv/9hEA4f7y+7QAAAAABwb89ggA/gD7APf/GP33/wj/9P4BAP//APQhAAz+Bv38ABgTDA0AABb5ABEBDfsC
Ew0F+dwa/gUA8wH5AP4R/QD4MwH/AAAAAOz///0B/fcAAAIDAADoBPgAB/8B9wAKAAD2AwcA+gT+AAf+DAAA7cQBAfT49v8i5/0P+eIMAP3//wAAxf/8/w3+/v/yAy
AH/fre79r3CBALFQDd/y34/NsAAff6/AYTBQn91P//AgAA9/EE9gD+6wTy/+fEDAYABfIAIf/lKQEG+v0A/9/9AwgfAAv/AAT5/wAfHwAA//wSAA39/vv+/AUD///6
AAL3BwIA+f7/AAD5BfoAAPn0/wr7/wn96v7+FT36BQAe/g8g8//63u/0AB36AATx/eoA/vkKAP/9+fz5/wD6AAAACOoDAQAA/yr/Afn/AA0A/A0m+gD4+voA+PfKAh
UPAAAA/Pf7/A78/hX6+AAB/AD1Bf74ACj9/RL+/P39Bv///AsA//r7/v4C2QQG6/79APL/Dfrm/dT3APz/AAX/CQAM+v8I/gD0AcX/GQwAAP/x//f4AQMe8gAP/wXo
IAD98P7/8QD4FAEOC/z7AQD+APsFAPDwAen88/cA/Pn//+8E6gADEv0A/wIE4/36ABgLJAD/AAEAA/4AGfr/E/YA+wAA9P/7AAAC+QDr7AcAFf31ABow8evpAD7/AA
YAHfj5//zX6QAU+/y4BQL+AP72/AD9AP/8FwL+9v/X+/v4AP79/v/9Af379P0SJd/+BOv/9f/98gAADPUA/QT/BAAm/P78AP8L/ADW9ewT8gAB/P4A+fsT7v0Q8Ajh
8RMA+PHaAP3/AB77CAkAAAj1/fD7BO3wACT+AA7/ADMAAOvK7AAD//8A/wL9AAAMDP0D7QD/AAb47u/7AP8C//7/AAD6AAAACf8AAPrxAQESAw4AAObn8fz/BQD+Hf
8A6ygA///99gQGCvoJC/b47gARCAkA+PsB6/wV//D89QD2AAr5DhX9/wkABf8A+vsA////AAABFzD78QD8AvX+AP//AAAC9gD5APAf/gAB//3AAAAOBAD9/wD///8O
6eUgAPrpAw4A9f4ABfj+AAEB////AATdAfUAAPPuVi4MBjP3///2DAv89f4ABAAV/gD3BP7+/+T/Awbr7Pwf//4pBg8ACPf/5QABAP78/f/+9SHu9gABBgAK/wAY/O
wlAfUC6QHvAADz5AMA/wAB/wTu//Dy7+8Q/wAAAP/1AAD/APj+4P4B/v/i/lH8IwAA+fL3/QDpAAAM+P/6Av/69OEAA+30AAD4EvAA/B0A9wAG+gT3AtoFB/71ACX3
/v8BBwD3/QAEAPsACf0A+vUcAPX/Cv8MAAAU/P4A/wH9/gT+3gD7Av8B8gIy+An/+wsV5wAA+wD8AwD9AxUA/+IA/Pz9/wwA//oA7xH9/wD/AAr5AO4BEDgD+/8o+9
kA9vz2/v8A8QAf8/ryABcMBf8KBv4A+QEAAAAI/uX9DAPjBwP/7/j+/jz/APoF+v/9/gL/APv//v4BAPz/+wAEG/b6FOv+PAH79xL/ABr///wB+P37+wD97wL89wnt
AP8AAATfAAD+6QEG9AD//xQQAP78CAAHAAAA/f/+8BL8AAAQEATrANozIgABDwr6AOwA/fztAQE2EPX///36/fP+//v5AAD8/hL+AAP8JQBABvz4BvT9/wEA/h0JAQ
QA6wDk9Pv9AAAA/vgDBfkA5hYECQEBDQIA+/z2/PX2I/0Stfz//RD7AesP//cLAAACChn/9gD28fvtCQgB/P//AAUHB/P98QAS/Or+5BAE8Tv//+kAAP/3+gADG/QX
/gAGBQABBwX2/wUJ/wDr/QsA/yT68skG/QAACvQGAwD/+wH8/wDyAPT4/eQAFQXxAOcOAeoBAP78/Cj9BP4A+f0AAQDu/vz6+gAD/Aj+AAv8Ahb4AEIBAADoAAABAA
EAAPz4F+sAAf/72LP9AP/xBP/tAf7/BP///v84C/4G/wP/7wD/APUAAAP8/AD5CPsNE7UA+f0A9/7/+f0GAAr/KPz6AP/6CP/6/QIE9AD+/wIC9/b+MxESBP8BAv7n
Bf8b/gL+//7s9QEF//wCACT59QADAwT92fX2BQAA+wAEAAD5//QAAAD2CQD86/8G9v8A/9ML8wD/+wD99O3+/wDu7wAB/wjzAAARAOb4DPIK4fAA/v8A+AYsC/0A//
z+AP//7AsA+AAAAQ3u5v/+Av/uAA0BBusK/hTt9v4ECgAl//cDA/0Axwn///v7CBL5Bf8NAfwBGOT1/AX99/z+AAv1/+3X/P8A/wD//gAK6v3UAv7ZBAz/EwA2/xP/
APELAOX/FQUA/f3/BQr/ARD37//+AOgbDwAI9v8EAOYH/PvzAABBAP/+9wn9AR8MAPf/APkA6/0N/wD79wEA/P/+EB3/8QDz+f0A/v4CAAD/3O7//s7y9AMOAPvD/P
oB/OHrA/71APv+//79//4A8/YA/A3s/vcAAgIPEQL+APjx9wDy9f87ABUA/Ar/Hfb/APz7AA7y9QDrAADu/wINA/v4AQz+APT+9vr9BO4G/fkA/wD8AAA69wD+/gD6
CgYCGQD4CwD0/QD7Af/6+/XxAd3/8v4A/wAU/PkAFwnx6wUAAAr/APr10gcC7irwAAXz5fu6/QcBAPYABvcA//3pAPsA/AD69AsA9BIFAAD0/wD+/P7+/PoT/P4EAP
n+9ub8/AD//AYA/w/3AP//AwEN+vj9KADr/PgJ/v4bCP/yAP8aFBQA/gD//wEAAAkACgDu8wAA9fr59/YA//sP+RIU9ffnAvcZ9/T/CwEA7fz8AOwAAA0AJALw/uX8
E/4A+gEDDAPo/wAADwAA/gAAHf/8AAMBAP/9APry///q4Pf/AP8FEv/e8g0a+DbxD/kS8/cDAAD/+QIA/u3tGw4AAP0A+/0A//4AMP4C/f3+DyEQ//r/DPv9APH8/P
0A/PwA/f8A6wb///QABAQA9P4A9AAA+fn8//n//wQEo/4A+iz+/f//AvUCADz7+fz8/xkAAPwR/QDHAAX6/wAA6AHZHQIDAScBEfcA/wD/5uoAAM8A+wD+Ce0K//UA
FvwdAPr9BQL8AA79GgH+/hj8MgAA+fT3+vv0AP/8Tv4E3gT+9fgABPgE8QYA/QDy/xUa7Pf0AP8AAAwRAAD3AP7q/BX6/PgABQAANwwA//73AAHj8w8a+QD//gDm/f
/4AP/3Agf/BiH0///6/wcA9vb//x31APL//gAA/QAA6v8ANQUGAArvAP0S1uf6CAAHAPoN/ggA+vwi7x34+/4A+fMAAPkC+wAP/vgF/AYA+AoAAB0BDhgAAPb+D/8R
AAr9APsA/+H//gAAAADZ+QD2+gn6+AAABwP9BQL//CMXAAD+8///Afn7AP//+yoA++7+9AX/HP7YAP///P//APkABgDpA/cQAAAC/vsA9wYAAP7+//fH/wD7CvbqEg
AA9/8A+f/3+gD5EAD9Edr5BAgA9gAAAPn/BeT+SP///BAAAM/58QD/8fwE/yT2ERj/AAABC/4AHfjYAwn7/P3//vgCAAAGBf8A+wfgAPv/Jv73DuLmAAAN/P76/gH/
Bu39AAwd/foO+gAE+fn6+fD0+gABEgH/AfwA/A/rABL9/un/AAkCCQDhF//8+AD6AP8AGv0O9/8A9v1S/gAA8P8E3xgAAf8n7x37AAIWBQAnAAAFBQAAAAj9AP8FFB
H+A+z8ABALAAH+/wD0/v7/AP8A+v0fAA0AAAAGAgT+AAD9AOwHABsA+QD78v/5zQQA/wIO/QMA9f/+APz0HPn8JRcS//4DABEACRAAAP/0/gAAggf8ABML/fD5+/AG
TgUH9fkA/wfv/Af//f7yBQsLIfoH/xb+9wAA+vb/5AD7Ev/49QH7B/8HAAEAAO3/AAHeAPfnAAgABQYA/fcA//sA/gD++voJ/wAAAP7/MwAAAPr6+/b+/g79ADD6Aw
Hi/wD49AD64gATD/rQAf4ABPX//9D//+sAAPsDAPr8/QD89f/0AAIa5Pz+AP3/Lf/aEwIGLQMA8v4L/v8A//z48/wSAP7vEf/g/foABgAKAg///foJAuK4AxED4v7q
/wAA///9E+4CD/4G9hQME+j1+/v//vgJ9BL39gA3/fH/AwP6APkSCPA2//Me/v/xAQEG+vT/6P78AvwA//3+AOjnAAHsAgAA+gLwAP7//gD99y0SA/wA/P0D/QAA+A
QA+PkJ/v/ZAPoABPgABxQAAP4LDPj2AP/5BAb0+RLmAP76/P7/JP4ACfsGABb4/v8A9P3x9+v/AALzANjO/wAA6wDnAQDr6/4k/AvqAAj5DgD96R3zAf8RBf4j/gAA
Auz9EP///QszAP4DABH5+AH5AAMR/t3/BALt5/8C/gL9B/v+//wAAPf//wP9+gD79fsAAAH6CAAABf8I+/wA//oAEfUAE+v3AAD+/vju9vMAEP8AABb/DAD5Axsa//
T9Bvz+7/8ACP8A9wbyKQD+AAsA+/sMJQwzx/8D/AAC/AAAAPj4/fD4CBcA6/7/K//0AP4A/vUAAAH+/f7++///AP7/AfL48g8NAAAA/gD4CgAA/gEOAPPX+QoK9vzv
/uv6BPzqAA/8//4A+///7Q7wAAP+Bg/5AP8A7+4BAgj4/REQFPsAEQ0ABBAOIfgJ6v3+HOD99wbzAQD5/u8H///9AP7/AArkKf8KAP8AAQbx8AAaCQD9AOsyAALzAA
H9/wD8/fz6/gEAAfb2AA///Qf4AP73CwYDAAQe6hD1K/4HAOoHAv73+P4A/9/+8v3//u7+9Nn/BA0TBAD86/X8/wAABwL/+f0HKf4CAf/9BAAZAP8AAP0M/wP/4+YA
AvsAAP3p//7q/x7/+/0AACYK+/8H+wT1/xLtAAAAABf+AP/+/gD8/PYA5wAG//Ey//z98xEFFfwA/PMPHf3///4A+AD3MP7/IP///wD/+v4i/vMn2yEA/vgN8QD++w
j/KgIuA//13QD8E+L0EvT5AP4A/QIA//z//v//A/cD//wBDf/7ABD7AP37/gTw/wAI9xUSAAD6APgK+C/pAfIIAvMYAfz/+iHzAP79AQAnAAIAAAAALP8ABQAPCAD+
//sG/AD6BAD8AP75+wD/AAf+/fn+APsTAOEBAA0OAAQAB+n+AAD5AAAD9/n/CP//AQAAAP78/P74+x34GvX+AP38AOf8A/r97AD47/T3AhgA/v9H+/3ZCiIA/wAA/f
ARCPz/A//vArH//g3/+wLt/v77//n///QA/gP+8fr2AAD/AAH/+QD+//0A//0YAsT7/v7/APb/AhHzAP0XAuf2AAQACv7/AAD+/wD0/f///e38/f75BgD/+u3/+fMA
8wvJAPIE///RABYA8eX9NgITCv/zAPkGK/cA99YAAAD///0AB/38AP/zBAH7+v4EAPP+9/EAKAz95f///wAPAAX/BwUDGQD/ISQGIv0AAP/7/vkJ/gsAEP8A/AAAu/
z5A/8AAAEJCfgVACAABPAAABYb/vz9AMr5+QD7/wP9Ae8ECCgAAwAM/wv/CQAP/QAAFP7cA/b2AAgA/wEAAQ7+/xL7ADb3/QD57BH+/QH66P/cAPX+8v8AAPoJAv4O
5gHnAAAH8Qr0BBQY+/LsCe8HAP8CAAAGABr/JOn//x38/f0C/v4A/xYACAoA+gArAQD0IAMGAABuAAABAAMAAwD9/vcKDRcK9/L8/tn5/f72/vzzBgD9BAP/6f38AP
saNQAACfMJLwAz6wHu/QIAAer2/wD/EBL///8I+v33IP8P//37F///BfjaAAAu9hYA/f8FBAL9APr97eP9A/UF9P3/BgX9AAEA//4IEgf4+AAJGvj47f8C4/7/AAv8
As//Bv8BAAAANPr+/AAGLQD9AAH////9/RIA//7x/wD/CADr8en//wMP/gQDBQD/APsA//8A/QAAEBUKCPYM8/kA9wHyACX7AAP+AP4A//ICIQcA4AHwEP/99//4AA
QO+QAFBgDxABsN+f3xAPL/4/31DvMF/QAqAP/1/fwA8fQECAYA3f0U+wAAAAD/9P0ADADtAAAEAQUR/vT+APIG/w735AD8/vv/I/33LP4AAP0A/u/+AAPvAATn/BDV
AP8ACAH1APz6+x/55/r8+gAA/+8CCgD97wD/AOr5AP/3/gAEAPbx/w4EDf/6/+sC5P78+AYG+v7j2P8J//X/+xgI/hQQCQwBBgD6BP/yMyIA8vQA8vn+AOgA/Pf9//
X//v0P/woJAP/6Ffv5AQv9/B7+A/MAAA76BQD+AAH0/PAA//8ABdn7/gASDOr5AP//3hXrAAL9AOP7/Av6APwQGj0D+QD++/7+DPr+AAABAP8CHwAkAO4FD/4BB/3y
KQAbAi319gD9/h3s2BoBIMoF//b3CPgZAP76GAoA/w/8AP/++vr2Gvwh//z5ABUGAAAA/An4+f4H6AAOFQoABQsf8v7+AAD+EBP9+An79hkBB//9AQAADuQIFyS7+Q
D9AP8MDhYYG/z9AOb8//j8AO8A/v8T/P/6/QDpAAAACuUI/ffkCyMC/v7+8hz86TgQ2Pfz/vT83gD8A/kAGuj//gAA//4A/QMAEAAA//f/AB8BBPoA//b8AOvz/QD4
8B0N9vo3//8A5wUC+yD/DPEFLu38//z++v0A+AYA7Pf89gD8//wA/wD2/AAQ+wD5+GQA//4ZABgH/ggAGfb/+/4PGAL7ARn/BAv6//QAAAgH/gD5AwAEAAAA/wULAP
P/tgT8Cu4O1vcH/vUSAAoT/d0A/Pkk/wD//QfzAA4A6QAAAAv///79IPgaAAT9AP7lBwDk///d/wMADwAtFPfQFf4C/xgA6P4A//zB+hQJ+gAA/gIA/wf9Avr8+QEA
Af8GBt3+7gAFAAP0DQ8AAAPt/QcFAAD/APwYAuvtBAwl//X3GQDn+v4AAQDq/QD7BQAI//z6/+/x6hHz/ubeAAkACwAN//sAAAEL7/7uC/z8BAAAGggCCf/w//v87f
v/AAf6//0AAPrh7wAy8+kLGP/9//H49f8AAPH8ARIB//z1AAH4/xcPAAP+/RgA9xb6HuoC/f/rBwYAAP4AAPr//e///dkBDv/nAAD48BIABQAM+AIA+QD97AfbHP0E
9wEA/v398QcG/A4AAQH+/PgA////ChIAAv8IAAAGAAP6C/oACwAI/Sn7AP4a/wEACv/3AAYCAP37/AgA//8K+P4B6v7/AB8G/wAJAhYMAP/0//8A/xgA8P/8Bg77/v
/x/wDuAPviAP38CQPvAP/8AAQA+fn0ACoC6P7t//7/APn3AP0A+wz/Be0A9vcIF+QA/AP76QcA8+v63/387PzeAAD9EQAA4AAAAPoAARb//wQK+v8PEvn9AAXkIgAA
BAMAEgMB7Pj9/gb/APkAKQD+/gAW9hz+AP/w7wD6BP8AAP7/+/wA8/n++/fwBfQA/gUJChrrAwAA/h/lLAcBKfwA+QERA/39AAz59/7+9P/18//9/Oz/8QDn++cF8f
oZ//T9/xD//RgB9/cAAfwC/gEAABgLAQD9ANYUAPQGCQ8A////+QAe/vwA9vT8AAz//Pn4/O7g/0oTAPn1AP8P/AUI8vYNBQEOCQD4/y3+8/8jAAD/8AAI3gDy/g8A
AAAcBQAAEvsA8vQKBwD5//8A/e8AAAAA+fkAAP//CQQAEgD3EAcD+wAEFQMQ0/oL/QAA/gD8+gjv/v4A//z9/v8LBQAE/v5l/f739fEAAAUA/dvQ/fL7AAAN+CIA+R
D50/7/AAAA5iL/HPsAAAEI9QD4AP0AAADfCAH9+/78BPYA+rL/AP4S9fgA8BIAAPYO9Pf4/P7s///9+QL3/wbqAPn68/sACfIC+PH//gkAAAH+/P37AAD+/v8X/wAA
/wD/8ADv/fsP1DP7BAn3/9/0//4A//QA9PoR6vD7+QD++937Cvz/DPkAAOgBC/n+/f8LBP///v8AAAgAAAAA+BH9//cK/AEAO/vv/v/y9vD/7/gAAAr6+/n/C/4AAA
MAAAEA+en3//4D8fcABPsELP/+/Qv6+/v6AAwTAQAA9yYA/v78+wD/Ahj/HP8GEeP4AAzt7gEV+wI5/AD86Pb7BxsA8Qvv/wMTBP0AC/wB//4S/v/+/AAA8v8AGQAP
7P/++wP/Av/7AP//BPP8//gADPwA7//q/Qj4ACYCAAL2Af0E/QAT9gD8//gAFNv5AP/8/vv//QAtAP8U/gT3WwD8E/wA3f/w5v4B9gz9/gAGBv4F+/v2EvXrAP8w/w
AF+PsH/P38+QD8+gv9/SAB/PcAEP319wP5APP8/QAm8Pb/AAH6+wD/BgAA//UIAgDiAw7s9QAOAf8AEgoUAAHwAAIAAf0AB/8F//Tv7AD5AAAA5vsQABD/EgEAAP39
8yHn5wD6AAHz/ggMBwAAAAD/Cv7/D/n9+/r4BP/5//jwEwYAAAAA/ev88v8A//H6/+7//Pf/5hkM/gjsBgr5/R//EvgX8QYA6RPs/uz+/OsEGgMf+f3o+AAFAAUACE
ECCP7/9vcGAADzA//z9AP9AAD/AAD9/Az8AAn5Bgz4+vb/0wD6+Ar3+AYA8gD//QsA//4A+aT/AvonAPMAAf8C/f8FExDu/xcA8wDkAAX47//tBP/7Af0F7wAA//v9
+AD8/ADw/vT+Duf7AvsAABMAABn/ACjxCf4E/hL0/gAA/yYA6AICAeu4ANj89Dbq+P8AAOv+ANbjFf32A/4MAPj07wwQAPn+5v3/AQgA/QAP/fsIAAL2BQcE//8qDg
H1//7//Bn1CP8H//sAHP0QAAAA9wD09/8xAv//AO8Z/AAB/PMAAPr9//n4JAEACwr/B/r+AQAE/wH/D/D+F/z+/BEG+9v9CvoBDQIB8QD7+gD/9yX2AAD+AgD+8OX5
AOjvAAH03v0SAPMBCgAA9hP/CVP/AP8JAPkS//YA//7X+/L/AgD+/A8AAQD2/xz7AAAEQO33/8USCPoA//sYAzsAAfX38wX3/wPr+v8A/vMI2REF/g8NACMH+usA2g
D+AQMDJ/sGAAP+Cv79BgAz/vAQ//EA2wsAAPbqBgsAAP4BAwD1AP4AAP8ANAf8APjy///28v3/Bf3u8/MKLgIBAAEFAPzx/g7/7//9DPgA4gA7Bw/9+v0ABv/n/P8T
9/71BOYAAP8B+/MPChPvLxL/AAYA9Pr//wH+DhX5/eID9v/9HQXwAP8A9/QAAev/7/8A9w/+/u3//fr1+vL38QB2ABf+AAD50iwH//3/Af4A/gDrAP//APX/AP75//
4C9vn3AAD7Avz6FQj//vX//ukBEPf5/vrTBv0AA/T6/E33/wAF7AAJ+QL8Cf77APwM/AD1/AD/D/7/Gv4A//ut/fXz/wD4FgcPAAH4AP8DCAD+8OL//v8C7/77APsS
AP/95gH5AwAu/wIA9OD/7wAJAAAADAUD/wAA/AIAAAv+/gD/ABn1AAn///8GDP4bAAMALAgE7/4A6Pzi6gD4/AD0AADx/QAA9vn99EEDAAAACw4A/w//Ae/7FgAC/Q
D96ev3/AgCAAD//BP+9//+KPrPAO8ME/f0A/QiAP4a/QAF7gAA9gD+q/TxAQ//GP0A7/7tABnrCvX4/wAAAwMJ//zx/gD//yTnDAr6+AD/AP3/9gD3AB3e8/kTAADz
A/4DAPz//QAd/f8AOP35/f4B/voH5wEE+v3z/vsAFwDdFAD5//P/++YA/v767P/0+gQABfoH9/YC/B3X+voA7wYAAwD5APP+AP7vBfwABgcqCA0K/QAA/v4CDPL7//
L0/gEAAAAB+AYA+gAXBRMTAxP+9wD+BAAAIQD4AgAKHv39/vIAAxEQ/kQM7e30AgD/AP33+AAJ/wIADvr/AA0AMPALCgUV+wH4Df7//3j8/awAAQj++/L+/v4h/f4A
1gMEAP/5AAAA9gD0/fwA/P/8FP7lABUAAAD65P4A/wAB//EUIu8AAP8ABP/16vgG///8+vb/Ben/CgoK/cj+9vgABQDv7PoAAxL6A/7+JwkLAPTk/QAQ+Prr9QT+Dw
T5//j+A/Xw/f/3GPMA+wD//QD0KQDt///f/P79/wAC5QABAgD9/AL8Qf/28fsIA+QA8ujNMPcJ+gwv+AAA//77+uQL7vL9AP0DFv3x8RH8/QEqAe7uAP/++f4KAf/9
//3//QTqAPfu+v39AewA/y33+OH+/AIF+/n///L6/AX1FQEA/xf39Pv3+gD/AAkCAP3+6/7+Ef/4+//85wD/AAY=
`;
