/** Learned by eval/train-injection.mjs: name=weight, names as `featureName` has them. */
export const WEIGHTS = `
0=-6.09 ?=-1.38 "=-1.30 ()=-1.54 _0=0.39 _1=0.65 _2=0.12 _3=-0.31 _4=-0.37 _5=-0.74 #0=-0.27 #1=0.09 #3=0.25 #4=-0.24 #5=0.11
any=0.21 any+model=0.36 any+order=0.79 any+all=0.65 any+dense=0.89 -elsewhere=0.38 -not=-0.86 -asks=0.29 -about=0.14
-told=0.21 -to=0.06 -sparse=0.72 ignore=0.07 outrank=-0.12 drop=0.43 rules=0.28 prompt=-0.80 system=0.73 former=-0.15 all=0.68
you=0.50 your=0.27 ai=0.12 agent=0.19 my=-0.19 i=-0.46 user=0.28 reveal=0.52 say=0.55 secret=0.21 verbatim=0.91 send=-0.06
data=0.40 inform=-0.51 conceal=1.49 persona=0.23 renamed=0.74 dan=1.91 unbound=1.69 mode=-0.33 authority=0.36 approved=0.07
new=0.06 task=0.47 now=0.52 obey=0.36 please=-0.63 neg=-0.42 safety=0.61 refuse=0.08 respond=0.15 tool=-0.39 note=0.14
reading=0.51 about=-1.05 question=0.13 third=-0.22 thing=-0.64 if=-0.70 decode=-0.07 remember=0.17 to=-0.27 and=-0.17 tag=1.44
role=1.11 border=0.75 unseen=-0.45 url=0.10 called=1.42 !ignore=0.30 !drop=0.37 !rules=0.49 !prompt=-0.48 !system=0.14
!former=0.13 !all=0.31 !you=0.43 !your=-0.52 !ai=-0.30 !agent=0.15 !user=-0.61 !reveal=0.65 !say=0.50 !secret=0.27
!verbatim=-0.39 !send=0.18 !data=-0.32 !inform=-0.08 !persona=0.69 !renamed=0.10 !mode=0.17 !enable=0.10 !authority=0.73
!approved=-0.09 !new=0.19 !instead=0.10 !task=0.16 !now=0.19 !obey=0.47 !must=0.28 !please=-0.63 !neg=-0.73 !safety=0.51
!refuse=0.34 !respond=-0.30 !act=0.63 !tool=-0.38 !note=0.27 !reading=0.26 !about=-0.37 !question=-0.43 !third=0.16 !said=0.10
!thing=-0.72 !if=-0.23 !remember=0.09 !to=0.15 !and=-0.41 !called=0.62 ~about=-1.90 ~question=-0.22 ~said=-0.17 ~border=0.12
~called=-0.06 /override=2.58 /override+model=0.42 /override+order=-0.11 /override+all=-0.16 /override+dense=-0.10
/outrank=2.62 /outrank+all=-0.08 /lift=1.44 /lift+model=1.04 /lift+order=-0.13 /lift+dense=-0.59 /start-over=1.28
/start-over+model=0.12 /start-over+order=-0.11 /start-over+all=-0.09 /start-over+dense=-0.06 /ignore-all=1.44
/ignore-all+model=0.06 /ignore-all+order=0.21 /ignore-all+dense=0.24 /all-ignored=0.92 /all-ignored+order=0.10
/all-ignored+all=0.12 /all-ignored+dense=0.12 /unsafe=1.98 /unsafe+model=-0.32 /unsafe+order=-0.26 /unsafe+all=-0.09
/unsafe+dense=-0.07 /without-rules=1.23 /without-rules+model=0.31 /without-rules+order=-0.53 /without-rules+all=0.19
/disobey=2.17 /disobey+model=-0.06 /disobey+order=-0.10 /disobey+dense=-0.21 /ignore-user=1.28 /ignore-user+model=-0.11
/ignore-user+order=0.31 /ignore-user+dense=-0.07 /new-rules=1.75 /new-rules+order=0.06 /new-rules+dense=-0.19 /your-rules=1.85
/your-rules+model=0.42 /your-rules+order=0.09 /your-rules+dense=1.17 /former-rules=0.91 /former-rules+model=0.26
/former-rules+dense=0.13 /told=1.16 /told+model=0.06 /told+order=-0.07 /told+dense=0.46 /obey-me=1.59 /obey-me+model=0.10
/obey-me+order=-0.07 /authority=0.56 /authority+model=0.18 /authority+order=-0.19 /authority+dense=-0.18 /claimed=0.96
/claimed+model=0.16 /claimed+order=-0.24 /approved=0.82 /approved+model=0.27 /approved+order=-0.12 /approved+dense=-0.45
/my-word=0.90 /my-word+model=0.06 /my-word+order=0.19 /my-word+dense=0.07 /persona=1.95 /persona+order=0.49
/persona+dense=0.13 /persona-ai=1.17 /persona-ai+model=-0.31 /persona-ai+order=0.20 /persona-ai+dense=-0.16 /renamed=2.08
/renamed+dense=0.38 /unbound=2.03 /unbound+model=0.17 /unbound+dense=0.08 /mode=1.34 /mode+model=-0.78 /mode+order=0.59
/mode+dense=0.18 /leak=1.98 /leak+model=0.79 /leak+order=-0.20 /leak-system=2.25 /leak-system+model=0.39
/leak-system+order=0.14 /leak-system+dense=-0.29 /leak-rules=1.40 /leak-rules+model=-0.25 /leak-rules+all=-0.43
/leak-rules+dense=0.19 /leak-text=0.95 /leak-text+model=0.14 /leak-text+order=-0.11 /leak-text+all=0.11 /leak-text+dense=-0.13
/verbatim=1.67 /verbatim+model=0.07 /give-away=1.22 /give-away+model=-0.56 /give-away+order=0.63 /give-away+dense=-0.30
/exfiltrate=1.71 /exfiltrate+order=0.06 /exfiltrate+dense=0.20 /to-address=0.90 /to-address+model=0.18 /to-address+order=-0.13
/to-address+dense=-0.14 /conceal=1.57 /conceal+model=-0.14 /conceal+order=0.25 /conceal+dense=0.14 /keep-from=1.66
/keep-from+model=-0.17 /keep-from+order=0.08 /keep-from+dense=-0.33 /not-tell=1.13 /not-tell+model=-0.47 /not-tell+order=-0.28
/not-tell+dense=0.34 /address=1.48 /address+model=-0.12 /address+order=-0.15 /address+dense=0.09 /address-agent=1.33
/address-agent+model=0.08 /address-agent+order=0.14 /called=1.61 /called+model=-0.26 /called+dense=-0.30 /reader=2.30
/reader+model=-0.05 /reader+order=0.31 /reader+dense=0.36 /ai-must=1.53 /ai-must+order=-0.24 /ai-must+dense=0.35
/you-must=0.39 /you-must+order=-0.44 /use-tool=0.66 /use-tool+model=-0.07 /use-tool+order=-0.22 /use-tool+dense=0.10
/not-refuse=2.08 /not-refuse+order=0.19 /not-refuse+dense=0.39 /answer-with=0.63 /answer-with+model=-0.09
/answer-with+order=-0.13 /answer-with+dense=0.12 /instead=0.18 /instead+model=0.20 /instead+order=-0.39 /instead+dense=-0.14
/decode=1.54 /decode+model=0.10 /decode+order=0.08 /decode+dense=0.09 /remember=0.97 /remember+order=0.09 /remember+all=0.08
/remember+dense=0.13 /marked=1.07 /marked+dense=-0.19 -/override=-0.06 -/lift=0.35 -/start-over=-0.36 -/ignore-all=-0.29
-/all-ignored=-0.20 -/disobey=-0.15 -/ignore-user=-0.17 -/your-rules=0.22 -/former-rules=0.38 -/told=-0.16 -/obey-me=0.19
-/authority=0.22 -/my-word=0.11 -/persona-ai=-0.13 -/unbound=0.29 -/leak=0.16 -/leak-system=-0.17 -/leak-rules=0.14
-/leak-text=-0.16 -/verbatim=0.41 -/give-away=0.19 -/to-address=0.27 -/conceal=0.09 -/keep-from=0.10 -/not-tell=-0.07
-/address=0.24 -/address-agent=0.24 -/called=0.24 -/you-must=-0.06 -/not-refuse=0.31 -/answer-with=0.12 -/marked=0.15
~/override=-0.07 ~/lift=-0.27 ~/start-over=-0.12 ~/ignore-all=-0.13 ~/unsafe=0.32 ~/without-rules=-0.15 ~/disobey=-0.07
~/ignore-user=-0.12 ~/former-rules=-0.13 ~/told=0.14 ~/obey-me=0.12 ~/authority=0.43 ~/claimed=0.08 ~/persona-ai=-0.05
~/renamed=-0.35 ~/unbound=-0.12 ~/leak-system=-0.29 ~/leak-rules=-0.06 ~/leak-text=-0.16 ~/give-away=0.48 ~/keep-from=-0.07
~/not-tell=-0.29 ~/address=-0.06 ~/address-agent=0.09 ~/ai-must=-0.22 ~/you-must=-0.12 ~/use-tool=-0.27 ~/not-refuse=0.15
~/answer-with=0.32 ~/marked=0.14 ignore>ignore=-0.08 ignore>rules=0.18 ignore>prompt=-0.17 ignore>system=0.43
ignore>former=0.29 ignore>your=-0.35 ignore>my=-0.30 ignore>user=0.29 ignore>say=0.13 ignore>inform=-0.09 ignore>persona=-0.07
ignore>authority=0.14 ignore>approved=0.07 ignore>new=-0.20 ignore>obey=-0.11 ignore>please=-0.17 ignore>neg=-0.13
ignore>refuse=-0.10 ignore>act=0.23 ignore>question=0.49 ignore>third=0.60 ignore>said=-0.08 ignore>thing=-0.24
ignore>if=-0.14 ignore>to=0.08 ignore>and=0.10 outrank>all=-0.09 outrank>user=-0.12 outrank>authority=0.10 drop>ignore=-0.05
drop>drop=-0.08 drop>rules=-0.30 drop>system=0.08 drop>former=-0.30 drop>all=0.42 drop>you=0.43 drop>your=-0.14 drop>my=-0.06
drop>data=-0.07 drop>task=0.37 drop>now=0.43 drop>obey=0.22 drop>please=0.07 drop>neg=0.07 drop>safety=-0.36 drop>tool=0.10
drop>third=-0.13 drop>thing=0.09 drop>if=-0.09 drop>remember=0.08 drop>to=-0.12 drop>and=0.16 rules>ignore=0.09
rules>outrank=0.10 rules>drop=-0.16 rules>rules=-0.14 rules>former=0.41 rules>all=0.09 rules>you=0.34 rules>your=-0.08
rules>i=0.09 rules>user=0.24 rules>reveal=0.16 rules>say=0.18 rules>secret=0.09 rules>verbatim=-0.12 rules>send=0.12
rules>data=-0.29 rules>inform=-0.08 rules>persona=0.64 rules>mode=-0.12 rules>authority=0.34 rules>now=0.21 rules>obey=-0.15
rules>must=-0.15 rules>safety=-0.24 rules>respond=-0.20 rules>act=0.73 rules>about=-0.11 rules>question=-0.10 rules>third=0.30
rules>said=-0.17 rules>thing=-0.28 rules>if=-0.11 rules>and=-0.11 rules>url=-0.17 prompt>user=-0.09 prompt>reveal=-0.28
prompt>say=0.09 prompt>data=-0.59 prompt>inform=-0.17 prompt>refuse=-0.07 prompt>if=-0.15 prompt>and=-0.07 system>drop=0.21
system>system=-0.07 system>i=0.34 system>reveal=-0.08 system>say=0.22 system>verbatim=0.09 system>new=0.20 system>task=-0.09
system>please=-0.13 system>act=0.13 system>question=-0.21 system>said=0.39 system>thing=-0.20 system>if=-0.08 system>and=0.07
former>drop=-0.10 former>system=0.21 former>all=0.08 former>you=-0.30 former>your=0.09 former>my=0.58 former>verbatim=0.32
former>authority=-0.08 former>approved=-0.21 former>new=0.17 former>must=-0.06 former>safety=-0.07 former>respond=-0.20
former>tool=0.24 former>note=-0.06 former>about=-0.05 former>third=-0.29 former>thing=0.25 former>to=-0.18 former>and=-0.58
all>drop=0.25 all>rules=0.27 all>system=0.27 all>former=0.55 all>your=-0.24 all>ai=0.12 all>i=0.09 all>user=0.45
all>secret=-0.06 all>send=0.10 all>unbound=-0.13 all>new=-0.11 all>obey=0.13 all>neg=-0.05 all>safety=0.39 all>respond=0.07
all>act=0.08 all>tool=0.12 all>third=0.23 all>said=-0.41 all>thing=-0.66 all>to=-0.10 all>and=0.39 you>ignore=-0.15
you>drop=0.80 you>rules=0.18 you>system=0.23 you>former=0.13 you>all=0.13 you>you=-0.05 you>ai=0.23 you>agent=0.40
you>my=-0.12 you>i=-0.43 you>user=0.05 you>say=-0.43 you>persona=-0.35 you>unbound=0.24 you>authority=-0.19 you>approved=0.08
you>new=-0.27 you>task=0.11 you>obey=-0.06 you>must=-0.13 you>neg=-0.42 you>safety=-0.10 you>act=0.07 you>note=-0.10
you>question=-0.06 you>third=-0.05 you>to=0.20 you>and=0.34 your>rules=0.36 your>prompt=0.30 your>system=0.88 your>former=0.06
your>all=0.16 your>ai=-0.13 your>i=-0.07 your>user=-0.08 your>secret=0.11 your>data=-0.31 your>persona=0.15 your>unbound=-0.27
your>authority=0.42 your>task=-0.05 your>must=-0.19 your>neg=-0.36 your>respond=0.39 your>act=0.05 your>note=0.18
your>thing=-0.20 your>and=-0.26 ai>ignore=0.25 ai>system=-0.09 ai>your=0.05 ai>ai=0.12 ai>i=-0.13 ai>reveal=-0.06 ai>say=0.16
ai>send=0.05 ai>inform=0.10 ai>conceal=-0.21 ai>unbound=-0.14 ai>new=0.09 ai>now=0.08 ai>obey=-0.25 ai>must=0.31
ai>respond=-0.20 ai>reading=0.11 ai>third=-0.09 ai>said=-0.20 ai>to=0.09 ai>and=-0.22 ai>called=0.25 agent>ignore=-0.15
agent>rules=0.08 agent>you=-0.20 agent>ai=-0.11 agent>agent=0.10 agent>send=0.06 agent>conceal=-0.16 agent>persona=0.08
agent>authority=-0.07 agent>obey=-0.16 agent>must=0.06 agent>neg=0.24 agent>act=0.23 agent>reading=0.13 agent>question=-0.25
agent>third=-0.06 agent>to=0.06 agent>and=0.09 my>rules=0.17 my>prompt=0.14 my>system=0.19 my>former=-0.36 my>all=-0.05
my>ai=-0.13 my>agent=-0.17 my>say=0.43 my>data=-0.14 my>obey=0.08 my>neg=-0.12 my>act=-0.15 my>question=0.33 my>said=0.15
my>thing=-0.33 my>to=0.15 my>and=-0.09 i>ignore=0.16 i>rules=0.30 i>system=0.24 i>former=0.17 i>you=0.23 i>my=-0.12 i>i=0.15
i>user=-0.06 i>say=0.11 i>secret=0.06 i>send=-0.09 i>data=0.20 i>inform=-0.09 i>approved=0.12 i>new=-0.11 i>task=-0.05
i>now=-0.05 i>must=0.15 i>refuse=-0.16 i>act=-0.31 i>third=-0.13 i>said=-0.16 i>thing=0.07 i>to=-0.14 user>drop=0.10
user>you=0.08 user>ai=-0.24 user>verbatim=0.62 user>data=-0.08 user>unbound=0.12 user>authority=-0.11 user>approved=0.26
user>must=-0.17 user>neg=-0.11 user>tool=-0.12 user>question=-0.19 user>third=0.16 user>said=0.38 reveal>prompt=-0.19
reveal>system=0.18 reveal>your=-0.22 reveal>secret=-0.07 reveal>data=0.30 reveal>please=0.07 reveal>act=0.23 reveal>third=0.06
reveal>if=-0.08 say>ignore=-0.06 say>prompt=-0.59 say>system=-0.22 say>former=-0.35 say>all=0.33 say>you=0.18 say>your=0.16
say>ai=-0.06 say>my=0.11 say>i=-0.08 say>user=0.53 say>say=-0.18 say>secret=0.07 say>verbatim=-0.21 say>send=-0.06
say>data=0.82 say>inform=-0.24 say>authority=0.10 say>refuse=0.05 say>act=0.11 say>note=-0.06 say>about=-0.05
say>question=0.26 say>third=0.26 say>said=-0.05 say>thing=0.35 secret>rules=0.46 secret>prompt=0.07 secret>your=0.11
secret>user=-0.22 secret>data=-0.06 secret>thing=-0.27 secret>decode=0.06 secret>to=-0.10 verbatim>all=-0.11 verbatim>you=0.15
verbatim>your=-0.12 verbatim>say=0.22 verbatim>data=0.07 verbatim>about=0.17 verbatim>thing=-0.09 verbatim>if=-0.16
verbatim>and=-0.13 send>system=-0.10 send>former=0.11 send>all=0.07 send>your=-0.25 send>i=0.25 send>user=-0.06 send>say=0.07
send>send=-0.17 send>data=0.23 send>mode=0.05 send>now=-0.07 send>neg=0.09 send>about=0.25 send>to=-0.20 send>url=-0.08
data>rules=-0.27 data>system=0.09 data>former=-0.09 data>all=-0.19 data>you=0.11 data>your=0.14 data>ai=-0.10 data>i=0.18
data>user=0.25 data>say=-0.22 data>verbatim=0.07 data>send=-0.12 data>data=0.23 data>authority=-0.06 data>new=-0.08
data>question=0.12 data>thing=0.21 data>if=-0.09 data>and=-0.12 inform>drop=-0.07 inform>rules=-0.07 inform>former=-0.15
inform>you=-0.27 inform>ai=-0.09 inform>my=-0.09 inform>user=0.17 inform>say=-0.25 inform>instead=-0.24 inform>safety=0.07
inform>act=-0.06 inform>third=0.11 inform>thing=-0.10 inform>to=-0.09 inform>url=0.09 conceal>conceal=-0.10
conceal>authority=0.06 conceal>act=0.12 conceal>third=0.08 conceal>thing=-0.12 conceal>and=-0.18 persona>all=-0.29
persona>you=-0.36 persona>your=0.11 persona>user=-0.17 persona>unbound=0.29 persona>authority=-0.05 persona>now=0.14
persona>please=0.28 persona>act=-0.08 persona>tool=0.09 persona>question=0.23 persona>thing=0.10 persona>if=0.15
persona>and=-0.24 renamed>ai=0.31 renamed>agent=0.18 renamed>my=-0.33 renamed>authority=-0.08 renamed>new=-0.09
renamed>respond=0.11 renamed>question=0.08 renamed>to=-0.08 dan>and=0.25 unbound>all=-0.15 unbound>say=0.12
unbound>persona=-0.05 unbound>act=-0.05 unbound>third=-0.13 unbound>said=-0.29 unbound>and=0.10 mode>rules=0.06
mode>former=-0.21 mode>all=0.22 mode>you=0.09 mode>your=-0.07 mode>say=-0.06 mode>secret=-0.17 mode>mode=0.15 mode>enable=0.24
mode>question=0.13 mode>to=-0.14 mode>and=-0.16 enable>all=0.07 enable>your=-0.10 enable>dan=0.42 enable>mode=-0.28
enable>authority=-0.18 enable>act=-0.08 enable>third=-0.06 enable>thing=-0.07 authority>ignore=0.11 authority>outrank=-0.12
authority>drop=0.11 authority>rules=0.53 authority>you=-0.26 authority>my=-0.19 authority>i=0.13 authority>user=0.06
authority>reveal=0.07 authority>send=0.15 authority>mode=-0.07 authority>authority=0.29 authority>approved=0.07
authority>new=-0.06 authority>task=-0.06 authority>must=-0.09 authority>neg=-0.08 authority>safety=0.25 authority>act=-0.11
authority>to=-0.11 authority>and=0.37 approved>former=0.26 approved>send=-0.07 approved>please=0.06 approved>neg=0.05
approved>act=-0.14 approved>third=-0.20 approved>to=0.21 approved>and=-0.17 new>rules=0.23 new>system=0.06 new>former=0.16
new>you=-0.14 new>your=0.51 new>my=0.22 new>user=-0.12 new>verbatim=-0.12 new>data=0.20 new>conceal=0.06 new>authority=-0.31
new>task=0.09 new>neg=0.22 new>respond=0.22 new>tool=0.09 new>about=0.31 new>question=0.07 new>thing=-0.18 new>if=-0.08
new>to=-0.06 instead>please=0.08 task>rules=0.31 task>ai=0.19 task>agent=0.08 task>send=0.13 task>conceal=-0.10
task>authority=-0.10 task>new=0.09 task>must=-0.22 task>thing=-0.11 task>to=-0.14 task>and=0.34 now>ignore=0.11 now>rules=0.11
now>you=0.10 now>my=0.19 now>i=-0.07 now>unbound=0.09 now>new=-0.18 now>obey=0.06 now>please=-0.12 now>respond=0.07
now>act=-0.13 now>question=0.06 now>said=0.20 now>to=-0.12 obey>rules=-0.34 obey>system=-0.11 obey>all=0.07 obey>say=0.14
obey>secret=0.06 obey>conceal=0.11 obey>unbound=0.13 obey>new=0.16 obey>please=-0.19 obey>neg=-0.13 obey>safety=-0.15
obey>third=0.08 obey>thing=0.22 must>ignore=0.16 must>drop=-0.05 must>former=-0.20 must>you=-0.10 must>your=0.18 must>ai=-0.29
must>agent=-0.17 must>my=0.06 must>user=0.07 must>reveal=0.06 must>say=0.09 must>secret=-0.19 must>send=0.09 must>inform=-0.08
must>conceal=0.21 must>persona=0.07 must>unbound=0.23 must>authority=-0.14 must>new=-0.08 must>now=0.06 must>obey=-0.23
must>must=-0.05 must>neg=-0.19 must>refuse=-0.06 must>respond=0.07 must>act=0.21 must>third=-0.09 must>thing=-0.16
must>to=0.51 please>rules=-0.09 please>former=-0.07 please>all=0.09 please>you=-0.10 please>my=-0.06 please>say=-0.14
please>persona=0.14 please>enable=0.14 please>obey=-0.15 please>please=0.16 please>neg=-0.22 please>act=-0.23 please>to=0.18
please>and=-0.18 neg>ignore=-0.38 neg>drop=-0.20 neg>rules=-0.19 neg>system=0.14 neg>former=-0.19 neg>all=0.25 neg>you=0.13
neg>your=0.18 neg>my=-0.06 neg>i=-0.15 neg>reveal=-0.22 neg>send=-0.13 neg>inform=0.54 neg>new=-0.20 neg>obey=0.06
neg>must=-0.28 neg>please=-0.06 neg>neg=0.07 neg>safety=0.11 neg>refuse=0.53 neg>respond=-0.07 neg>act=-0.35 neg>tool=-0.06
neg>thing=-0.08 neg>to=-0.09 neg>and=-0.08 safety>ignore=-0.11 safety>drop=0.15 safety>rules=-0.15 safety>secret=-0.12
safety>safety=0.40 safety>refuse=0.13 safety>thing=-0.21 safety>if=-0.18 safety>to=-0.12 safety>and=0.09 refuse>rules=-0.14
refuse>former=-0.10 refuse>your=0.06 refuse>obey=0.12 refuse>please=-0.09 refuse>neg=0.06 refuse>act=-0.06 refuse>about=-0.05
refuse>to=-0.28 refuse>and=0.42 respond>system=-0.36 respond>all=0.49 respond>you=0.14 respond>agent=-0.06 respond>user=-0.11
respond>unbound=0.15 respond>now=-0.14 respond>neg=0.25 respond>refuse=-0.26 respond>respond=0.09 respond>about=0.17
respond>thing=-0.32 respond>if=0.10 respond>to=-0.08 respond>and=-0.14 act>rules=-0.28 act>system=-0.67 act>all=-0.24
act>you=-0.31 act>your=-0.24 act>my=-0.15 act>i=-0.25 act>user=0.16 act>say=-0.09 act>secret=0.19 act>send=0.15 act>data=0.37
act>unbound=-0.15 act>new=0.07 act>task=-0.12 act>now=-0.06 act>neg=-0.14 act>about=-0.06 act>question=0.84 act>third=-0.22
act>thing=0.55 act>if=-0.07 act>to=0.21 act>and=0.13 act>url=-0.12 tool>ignore=-0.10 tool>drop=0.09 tool>former=0.10
tool>all=-0.24 tool>you=0.10 tool>user=0.13 tool>data=-0.11 tool>authority=0.05 tool>new=-0.07 tool>must=0.06 tool>act=0.06
tool>tool=0.07 tool>thing=0.32 note>ignore=0.28 note>drop=-0.10 note>system=-0.05 note>all=-0.10 note>your=-0.18 note>ai=0.19
note>agent=0.06 note>my=-0.10 note>user=-0.07 note>reveal=0.06 note>unbound=-0.15 note>new=0.06 note>task=-0.06
note>please=0.05 note>safety=-0.06 note>refuse=0.27 note>respond=0.10 note>act=-0.06 note>about=0.18 note>third=0.09
note>thing=-0.10 note>and=0.15 reading>ai=-0.08 reading>send=0.09 reading>inform=0.11 reading>persona=-0.10 reading>must=0.07
reading>please=-0.09 reading>thing=0.21 about>ignore=-0.14 about>drop=0.37 about>rules=-0.07 about>you=0.15 about>ai=-0.07
about>i=0.17 about>authority=-0.05 about>must=-0.06 about>about=-0.26 about>question=-0.06 about>thing=-0.14 about>to=0.10
about>url=0.09 question>ignore=-0.05 question>drop=0.14 question>rules=0.10 question>system=-0.10 question>former=-0.10
question>all=0.10 question>you=0.15 question>your=0.10 question>agent=-0.38 question>my=-0.18 question>i=-0.09
question>user=-0.15 question>say=-0.14 question>renamed=-0.07 question>unbound=0.16 question>obey=0.15 question>must=0.16
question>neg=-0.16 question>safety=0.05 question>act=-0.10 question>note=-0.13 question>about=-0.17 question>question=-0.36
question>said=-0.15 question>thing=0.40 question>to=0.54 third>ignore=0.64 third>drop=-0.10 third>rules=-0.22
third>system=0.12 third>former=-0.18 third>ai=-0.07 third>agent=-0.07 third>i=-0.06 third>user=-0.16 third>say=-0.16
third>verbatim=0.25 third>data=-0.21 third>inform=0.10 third>conceal=-0.06 third>authority=-0.13 third>now=0.06
third>must=0.30 third>neg=-0.20 third>safety=0.38 third>refuse=-0.20 third>act=-0.08 third>about=0.09 third>third=-0.08
third>said=0.27 third>to=-0.07 third>and=0.20 said>ignore=-0.05 said>drop=0.40 said>rules=-0.07 said>system=-0.10
said>former=-0.26 said>all=0.18 said>you=0.65 said>your=0.17 said>ai=-0.12 said>agent=-0.23 said>my=-0.13 said>i=-0.17
said>user=-0.13 said>reveal=0.05 said>verbatim=-0.14 said>new=0.08 said>act=0.21 said>third=-0.32 said>to=-0.29 said>and=0.05
thing>ignore=-0.24 thing>outrank=0.08 thing>drop=-0.24 thing>prompt=-0.26 thing>all=0.28 thing>you=0.06 thing>your=0.16
thing>ai=0.61 thing>my=-0.17 thing>i=-0.26 thing>user=-0.06 thing>say=-0.15 thing>verbatim=0.19 thing>send=-0.12
thing>data=0.44 thing>authority=0.37 thing>new=-0.36 thing>task=-0.12 thing>must=-0.06 thing>please=-0.12 thing>tool=-0.05
thing>about=-0.10 thing>question=-0.06 thing>third=0.12 thing>said=-0.17 thing>thing=-0.36 thing>if=-0.28 thing>to=-0.17
thing>and=-0.34 thing>url=-0.10 if>drop=-0.06 if>you=-0.19 if>ai=0.06 if>agent=0.08 if>i=-0.30 if>user=-0.32 if>renamed=-0.10
if>enable=-0.08 if>task=-0.10 if>refuse=0.13 if>third=-0.30 if>said=0.06 if>thing=-0.06 if>and=0.11 decode>third=0.06
decode>and=-0.05 remember>all=0.08 remember>user=0.11 to>ignore=-0.06 to>drop=-0.21 to>former=-0.07 to>all=-0.41 to>you=-0.15
to>ai=0.06 to>my=0.20 to>i=0.07 to>user=-0.09 to>secret=-0.10 to>data=-0.09 to>conceal=0.17 to>persona=-0.32 to>enable=-0.06
to>authority=0.11 to>new=-0.09 to>instead=0.09 to>now=-0.10 to>neg=-0.13 to>refuse=0.18 to>act=-0.72 to>tool=0.20
to>note=-0.06 to>about=-0.07 to>question=-0.09 to>third=-0.13 to>said=0.22 to>thing=0.26 to>to=-0.09 to>and=0.06 to>url=0.28
and>ignore=-0.25 and>drop=-0.18 and>all=0.40 and>you=-0.29 and>ai=-0.08 and>my=0.50 and>i=0.14 and>reveal=0.16 and>say=0.27
and>secret=-0.06 and>verbatim=0.10 and>send=-0.14 and>inform=-0.12 and>persona=-0.06 and>mode=-0.06 and>authority=-0.07
and>new=-0.06 and>obey=0.27 and>must=0.18 and>respond=-0.40 and>act=0.61 and>tool=-0.16 and>question=-0.27 and>third=0.08
and>thing=-0.07 and>if=0.11 and>to=0.37 and>url=0.09 tag>drop=-0.21 tag>new=0.32 tag>now=0.06 tag>obey=0.05 tag>act=-0.09
role>you=-0.12 role>ai=0.07 role>my=-0.07 role>i=0.19 role>user=0.21 role>mode=-0.06 role>act=0.11 border>authority=0.22
border>new=-0.27 unseen>ignore=-0.19 unseen>rules=-0.09 unseen>all=-0.07 unseen>you=-0.08 unseen>ai=-0.39 unseen>i=0.05
unseen>neg=-0.08 unseen>act=-0.34 unseen>note=0.05 url>instead=0.07 url>act=0.07 url>and=0.09 url>url=-0.09 called>former=0.31
called>ai=-0.07 called>i=0.07 called>send=0.05 called>inform=0.12 called>authority=-0.08 called>obey=0.06 called>please=0.17
called>neg=-0.05 called>act=-0.37 called>said=0.09 called>thing=0.10 about0=-0.10 about1=-0.23 about2=-1.07 about3=-0.72
`;
