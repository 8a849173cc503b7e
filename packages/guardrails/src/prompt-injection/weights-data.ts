/** Learned by eval/train-injection.mjs: name=weight, names as `featureName` has them. */
export const WEIGHTS = `
0=-6.09 ?=-1.47 "=-1.20 ()=-1.65 _0=0.32 _1=0.61 _3=-0.21 _4=-0.52 _5=-0.73 #0=-0.29 #2=0.21 #3=0.11 #4=-0.34 #5=0.17 any=0.09
any+model=0.38 any+order=0.86 any+all=0.69 any+dense=0.93 -elsewhere=0.35 -not=-0.82 -asks=0.21 -about=0.23 -told=0.20
-to=0.06 -sparse=0.67 ignore=0.21 outrank=-0.16 drop=0.40 rules=0.27 prompt=-0.81 system=0.75 all=0.70 you=0.54 your=0.37
ai=0.15 agent=0.08 my=-0.07 i=-0.40 user=0.38 reveal=0.45 say=0.59 secret=0.14 verbatim=0.92 send=-0.13 data=0.20 inform=-0.51
conceal=1.49 persona=0.16 renamed=0.77 dan=2.07 unbound=1.72 mode=-0.41 authority=0.46 approved=0.12 new=0.12 task=0.50
now=0.47 obey=0.45 must=-0.19 please=-0.63 neg=-0.49 safety=0.58 refuse=0.08 respond=0.16 tool=-0.38 reading=0.47 about=-1.19
third=-0.22 thing=-0.73 if=-0.70 decode=-0.09 remember=0.17 to=-0.25 and=-0.11 tag=1.43 role=1.23 border=0.69 unseen=-0.31
url=0.20 called=1.37 !ignore=0.43 !drop=0.42 !rules=0.48 !prompt=-0.50 !system=0.12 !former=-0.09 !all=0.30 !you=0.51
!your=-0.45 !ai=-0.31 !agent=0.12 !my=-0.14 !user=-0.56 !reveal=0.64 !say=0.51 !secret=0.27 !verbatim=-0.36 !send=0.08
!data=-0.28 !inform=-0.07 !persona=0.67 !renamed=0.10 !dan=0.23 !unbound=0.05 !mode=0.16 !enable=0.34 !authority=0.59
!approved=-0.10 !new=0.43 !instead=0.10 !now=0.19 !obey=0.35 !must=0.28 !please=-0.63 !neg=-0.81 !safety=0.58 !refuse=0.31
!respond=-0.37 !act=0.64 !tool=-0.35 !note=0.24 !reading=0.26 !about=-0.40 !question=-0.41 !said=0.15 !thing=-0.66 !if=-0.21
!remember=0.09 !to=0.17 !and=-0.36 !called=0.57 ~conceal=-0.07 ~about=-1.65 ~question=-0.11 ~said=-0.46 ~tag=0.08 ~border=0.12
/override=2.49 /override+model=0.40 /override+order=-0.17 /override+all=-0.20 /override+dense=-0.24 /outrank=2.57
/outrank+all=-0.10 /lift=1.33 /lift+model=1.04 /lift+order=-0.21 /lift+dense=-0.60 /start-over=1.25 /start-over+model=0.12
/start-over+order=-0.17 /start-over+all=-0.12 /start-over+dense=-0.07 /ignore-all=1.45 /ignore-all+order=0.20
/ignore-all+dense=0.25 /all-ignored=0.87 /all-ignored+order=0.06 /all-ignored+all=0.12 /all-ignored+dense=0.08 /unsafe=2.04
/unsafe+model=-0.32 /unsafe+order=-0.20 /unsafe+all=-0.10 /without-rules=1.23 /without-rules+model=0.29
/without-rules+order=-0.51 /without-rules+all=0.22 /without-rules+dense=-0.13 /disobey=2.15 /disobey+model=-0.05
/disobey+order=-0.09 /disobey+dense=-0.22 /ignore-user=1.28 /ignore-user+model=-0.10 /ignore-user+order=0.30
/ignore-user+dense=-0.09 /new-rules=1.67 /new-rules+model=-0.06 /new-rules+order=0.08 /new-rules+dense=-0.21 /your-rules=1.81
/your-rules+model=0.59 /your-rules+order=0.05 /your-rules+dense=1.09 /former-rules=0.93 /former-rules+model=0.31
/former-rules+order=0.12 /former-rules+dense=0.15 /told=1.18 /told+dense=0.48 /obey-me=1.55 /obey-me+model=0.08
/obey-me+order=-0.10 /obey-me+dense=-0.09 /authority=0.39 /authority+model=0.14 /authority+order=-0.22 /authority+dense=-0.31
/claimed=0.97 /claimed+model=0.25 /claimed+order=-0.19 /approved=0.83 /approved+model=0.26 /approved+order=-0.12
/approved+dense=-0.47 /my-word=0.85 /my-word+order=0.11 /persona=1.92 /persona+order=0.48 /persona+dense=0.13 /persona-ai=1.19
/persona-ai+model=-0.35 /persona-ai+order=0.25 /persona-ai+dense=-0.18 /renamed=2.09 /renamed+dense=0.32 /unbound=2.06
/unbound+model=0.15 /unbound+dense=0.10 /mode=1.21 /mode+model=-0.76 /mode+order=0.53 /leak=1.95 /leak+model=0.76
/leak+order=-0.21 /leak+dense=-0.06 /leak-system=2.36 /leak-system+model=0.37 /leak-system+order=0.11 /leak-system+dense=-0.23
/leak-rules=1.53 /leak-rules+model=-0.16 /leak-rules+all=-0.38 /leak-rules+dense=0.19 /leak-text=0.91 /leak-text+model=0.11
/leak-text+order=-0.15 /leak-text+all=0.07 /leak-text+dense=-0.20 /verbatim=1.66 /verbatim+model=0.10 /give-away=1.05
/give-away+model=-0.46 /give-away+order=0.40 /give-away+dense=-0.25 /exfiltrate=1.85 /exfiltrate+order=0.16
/exfiltrate+dense=0.34 /to-address=0.91 /to-address+model=0.21 /to-address+order=-0.12 /to-address+dense=-0.13 /conceal=1.58
/conceal+model=-0.18 /conceal+order=0.29 /conceal+dense=0.24 /keep-from=1.64 /keep-from+model=-0.16 /keep-from+order=0.07
/keep-from+dense=-0.34 /not-tell=1.21 /not-tell+model=-0.55 /not-tell+order=-0.14 /not-tell+dense=0.42 /address=1.52
/address+order=-0.08 /address+dense=0.12 /address-agent=1.40 /address-agent+model=0.12 /address-agent+order=0.20 /called=1.55
/called+model=-0.33 /called+order=-0.05 /called+dense=-0.29 /reader=2.25 /reader+order=0.31 /reader+dense=0.30 /ai-must=1.59
/ai-must+order=-0.35 /ai-must+dense=0.41 /you-must=0.37 /you-must+order=-0.40 /use-tool=0.70 /use-tool+order=-0.18
/use-tool+dense=0.16 /not-refuse=1.95 /not-refuse+order=0.08 /not-refuse+dense=0.23 /answer-with=0.74 /answer-with+dense=0.20
/instead=0.29 /instead+model=0.16 /instead+order=-0.32 /decode=1.53 /decode+model=0.08 /decode+order=0.06 /decode+dense=0.07
/remember=0.97 /remember+order=0.09 /remember+all=0.08 /remember+dense=0.19 /marked=0.98 /marked+model=0.08 /marked+all=-0.05
/marked+dense=-0.33 -/override=-0.22 -/lift=0.32 -/start-over=-0.47 -/ignore-all=-0.28 -/all-ignored=-0.19 -/unsafe=-0.06
-/disobey=-0.10 -/ignore-user=-0.15 -/your-rules=0.28 -/former-rules=0.34 -/told=-0.13 -/obey-me=0.17 -/authority=0.25
-/my-word=0.13 -/persona-ai=-0.12 -/unbound=0.27 -/mode=0.06 -/leak=0.16 -/leak-system=-0.20 -/leak-rules=0.30
-/leak-text=-0.08 -/verbatim=0.41 -/give-away=0.27 -/to-address=0.35 -/keep-from=0.13 -/address=0.25 -/address-agent=0.25
-/called=0.26 -/not-refuse=0.46 -/answer-with=0.16 -/decode=-0.06 -/marked=0.13 ~/override=-0.07 ~/lift=-0.26
~/start-over=-0.16 ~/ignore-all=-0.14 ~/without-rules=-0.11 ~/disobey=-0.08 ~/ignore-user=-0.11 ~/new-rules=0.07
~/your-rules=-0.09 ~/former-rules=-0.16 ~/told=0.12 ~/authority=0.50 ~/my-word=0.06 ~/renamed=-0.29 ~/unbound=-0.10
~/mode=-0.05 ~/leak-system=-0.32 ~/leak-rules=-0.06 ~/leak-text=-0.10 ~/give-away=0.49 ~/exfiltrate=-0.07 ~/to-address=-0.06
~/keep-from=-0.07 ~/not-tell=-0.28 ~/address=-0.07 ~/address-agent=0.14 ~/ai-must=-0.16 ~/you-must=-0.21 ~/use-tool=-0.35
~/not-refuse=0.13 ~/answer-with=0.39 ~/instead=-0.20 ~/marked=0.28 ignore>ignore=-0.07 ignore>rules=0.06 ignore>prompt=-0.20
ignore>system=0.25 ignore>former=0.13 ignore>you=0.05 ignore>your=-0.38 ignore>my=-0.36 ignore>user=0.31 ignore>say=0.07
ignore>inform=-0.06 ignore>persona=-0.08 ignore>authority=0.33 ignore>approved=0.07 ignore>new=-0.20 ignore>obey=-0.12
ignore>please=-0.18 ignore>neg=-0.13 ignore>safety=0.08 ignore>refuse=-0.12 ignore>respond=0.07 ignore>act=0.14
ignore>question=0.53 ignore>third=0.54 ignore>said=-0.09 ignore>thing=-0.28 ignore>if=-0.15 ignore>to=0.06 ignore>and=0.08
outrank>all=-0.10 outrank>user=-0.13 outrank>authority=0.11 drop>drop=-0.08 drop>rules=-0.29 drop>system=0.12
drop>former=-0.27 drop>all=0.33 drop>you=0.48 drop>your=-0.19 drop>my=-0.05 drop>data=-0.07 drop>task=0.30 drop>now=0.38
drop>obey=0.23 drop>please=0.06 drop>neg=0.08 drop>safety=-0.34 drop>tool=0.10 drop>third=-0.10 drop>thing=0.07 drop>if=-0.10
drop>remember=0.08 drop>to=-0.16 drop>and=0.08 rules>ignore=0.08 rules>outrank=0.11 rules>drop=-0.07 rules>rules=-0.13
rules>former=0.50 rules>all=0.05 rules>you=0.38 rules>ai=0.05 rules>i=0.08 rules>user=0.37 rules>reveal=0.12 rules>say=0.25
rules>secret=0.07 rules>verbatim=-0.12 rules>send=0.18 rules>data=-0.29 rules>inform=-0.06 rules>persona=0.66 rules>mode=-0.09
rules>authority=0.32 rules>now=0.22 rules>obey=0.17 rules>must=-0.10 rules>safety=-0.21 rules>respond=-0.21 rules>act=0.40
rules>about=-0.10 rules>question=-0.08 rules>third=0.13 rules>said=-0.17 rules>thing=-0.28 rules>and=-0.07 rules>url=-0.18
prompt>user=-0.09 prompt>reveal=-0.31 prompt>say=0.07 prompt>data=-0.57 prompt>inform=-0.17 prompt>refuse=-0.05
prompt>if=-0.17 prompt>and=-0.06 system>drop=0.21 system>system=-0.07 system>i=0.17 system>reveal=-0.07 system>say=0.24
system>verbatim=0.07 system>new=0.19 system>task=-0.09 system>please=-0.13 system>act=0.08 system>question=-0.18
system>said=0.32 system>thing=-0.21 system>if=-0.07 system>and=0.11 former>drop=-0.13 former>system=0.21 former>all=0.19
former>you=-0.31 former>your=0.07 former>my=0.57 former>verbatim=0.28 former>authority=-0.06 former>approved=-0.22
former>new=-0.13 former>must=-0.05 former>safety=-0.05 former>respond=-0.16 former>act=-0.11 former>tool=0.25
former>note=-0.07 former>third=-0.23 former>thing=0.30 former>to=-0.15 former>and=-0.46 all>drop=0.21 all>rules=0.35
all>system=0.23 all>former=0.63 all>your=-0.14 all>ai=0.11 all>i=0.22 all>user=0.41 all>send=0.13 all>conceal=-0.06
all>unbound=-0.14 all>new=-0.09 all>obey=0.12 all>safety=0.35 all>respond=0.07 all>act=0.08 all>tool=0.15 all>third=0.25
all>said=-0.38 all>thing=-0.48 all>to=-0.09 all>and=0.37 you>ignore=-0.07 you>drop=0.77 you>rules=0.18 you>system=0.24
you>former=0.12 you>all=0.14 you>ai=0.26 you>agent=0.32 you>my=-0.07 you>i=-0.40 you>say=-0.41 you>persona=-0.36
you>unbound=0.22 you>authority=-0.15 you>approved=0.08 you>new=-0.23 you>task=0.11 you>obey=0.20 you>must=-0.11 you>neg=-0.36
you>safety=-0.11 you>act=0.11 you>note=-0.12 you>to=0.29 you>and=0.41 your>rules=0.41 your>prompt=0.32 your>system=0.87
your>former=0.12 your>all=-0.09 your>ai=-0.06 your>i=-0.07 your>user=-0.14 your>secret=0.07 your>data=-0.26 your>persona=0.11
your>unbound=-0.22 your>authority=0.52 your>task=-0.11 your>must=-0.18 your>neg=-0.33 your>respond=0.43 your>note=0.15
your>thing=-0.23 your>and=-0.27 ai>ignore=0.22 ai>system=-0.09 ai>all=0.07 ai>ai=0.12 ai>i=-0.06 ai>say=0.18 ai>send=0.07
ai>inform=0.11 ai>conceal=-0.29 ai>unbound=-0.20 ai>new=0.07 ai>now=0.08 ai>obey=-0.21 ai>must=0.38 ai>neg=0.06
ai>reading=0.07 ai>question=0.06 ai>third=-0.08 ai>said=-0.19 ai>to=0.09 ai>and=-0.15 ai>called=0.19 agent>ignore=-0.09
agent>you=-0.18 agent>ai=-0.09 agent>agent=0.09 agent>conceal=-0.14 agent>persona=0.08 agent>authority=-0.07 agent>obey=-0.18
agent>must=0.08 agent>neg=0.19 agent>act=0.26 agent>reading=0.12 agent>question=-0.19 agent>third=-0.06 agent>to=0.07
agent>and=0.10 agent>called=0.12 my>prompt=0.14 my>system=0.12 my>former=-0.36 my>ai=-0.14 my>agent=-0.11 my>say=0.38
my>send=-0.05 my>data=-0.11 my>new=-0.05 my>obey=0.08 my>neg=-0.13 my>act=-0.13 my>question=0.27 my>said=0.28 my>thing=-0.36
my>to=0.43 my>and=-0.09 i>ignore=0.18 i>rules=0.29 i>system=0.24 i>former=0.13 i>all=-0.20 i>you=0.28 i>your=0.13 i>my=-0.16
i>i=0.11 i>say=0.30 i>secret=0.08 i>send=-0.09 i>data=0.23 i>inform=-0.11 i>authority=-0.14 i>approved=0.12 i>new=-0.06
i>now=-0.05 i>must=0.15 i>refuse=-0.17 i>respond=-0.05 i>act=-0.32 i>third=-0.13 i>said=-0.13 i>thing=-0.23 i>to=-0.17
user>drop=0.09 user>all=0.13 user>you=0.06 user>ai=-0.24 user>verbatim=0.64 user>data=-0.06 user>unbound=0.12
user>authority=-0.10 user>approved=0.25 user>new=-0.05 user>must=-0.10 user>neg=-0.13 user>act=-0.07 user>tool=-0.11
user>question=-0.17 user>third=0.16 user>said=0.32 user>thing=-0.14 user>and=-0.09 reveal>prompt=-0.20 reveal>system=0.20
reveal>your=-0.23 reveal>secret=-0.07 reveal>data=0.24 reveal>conceal=0.05 reveal>please=0.07 reveal>act=0.23
reveal>third=0.05 reveal>if=-0.06 say>ignore=-0.10 say>prompt=-0.57 say>system=-0.26 say>former=-0.32 say>all=0.34
say>you=0.13 say>your=0.15 say>ai=-0.07 say>my=0.23 say>i=0.08 say>user=0.49 say>say=-0.22 say>secret=0.06 say>verbatim=-0.23
say>data=0.43 say>inform=-0.24 say>authority=0.15 say>obey=-0.06 say>act=0.14 say>about=-0.07 say>question=0.18 say>third=0.15
say>thing=0.28 secret>rules=0.44 secret>prompt=0.07 secret>your=0.08 secret>agent=0.06 secret>user=-0.15 secret>thing=-0.23
secret>if=-0.06 secret>decode=0.05 secret>to=-0.11 verbatim>all=-0.09 verbatim>you=0.18 verbatim>your=-0.13 verbatim>i=0.06
verbatim>say=0.21 verbatim>data=0.09 verbatim>about=0.16 verbatim>if=-0.22 verbatim>and=-0.16 send>system=-0.08
send>former=0.09 send>all=0.09 send>your=-0.21 send>i=-0.09 send>say=0.06 send>send=-0.16 send>data=0.27 send>mode=0.07
send>now=-0.07 send>neg=0.08 send>about=0.28 send>thing=0.06 send>to=-0.14 send>url=-0.06 data>rules=-0.21 data>system=0.06
data>former=-0.06 data>all=-0.05 data>you=0.15 data>your=0.09 data>ai=-0.09 data>i=0.21 data>user=0.09 data>say=-0.20
data>verbatim=0.07 data>send=-0.07 data>data=0.60 data>authority=-0.06 data>new=-0.08 data>question=0.11 data>thing=0.14
data>if=-0.08 data>to=0.11 inform>drop=-0.05 inform>rules=-0.06 inform>former=-0.14 inform>you=-0.27 inform>ai=-0.07
inform>my=-0.05 inform>user=0.21 inform>say=-0.24 inform>instead=-0.24 inform>act=-0.08 inform>third=0.15 inform>thing=-0.15
inform>to=-0.10 inform>url=0.10 conceal>user=-0.07 conceal>conceal=-0.10 conceal>act=0.15 conceal>third=0.07
conceal>thing=-0.14 conceal>and=-0.20 persona>all=-0.32 persona>you=-0.30 persona>your=0.08 persona>my=0.05 persona>user=-0.18
persona>unbound=0.31 persona>now=0.09 persona>please=0.28 persona>refuse=0.05 persona>act=-0.08 persona>tool=0.14
persona>question=0.23 persona>thing=0.09 persona>if=0.14 persona>to=-0.05 persona>and=-0.30 renamed>ai=0.32 renamed>agent=0.15
renamed>my=-0.33 renamed>unbound=0.05 renamed>authority=-0.08 renamed>new=-0.09 renamed>respond=0.11 renamed>question=0.07
renamed>to=-0.14 dan>and=0.19 unbound>all=-0.10 unbound>say=0.12 unbound>neg=0.06 unbound>act=-0.05 unbound>third=-0.11
unbound>said=-0.34 unbound>and=0.14 mode>rules=0.06 mode>former=-0.19 mode>all=0.20 mode>you=0.08 mode>your=-0.08
mode>secret=-0.14 mode>mode=0.19 mode>enable=0.16 mode>question=0.15 mode>to=-0.16 mode>and=-0.13 enable>all=0.19
enable>your=-0.12 enable>dan=0.37 enable>mode=-0.24 enable>authority=-0.14 enable>act=-0.05 authority>outrank=-0.13
authority>drop=0.13 authority>rules=0.56 authority>you=-0.28 authority>my=-0.30 authority>i=0.14 authority>user=0.06
authority>say=0.18 authority>send=0.07 authority>data=0.12 authority>mode=-0.09 authority>authority=0.30
authority>approved=0.06 authority>new=-0.06 authority>must=-0.12 authority>neg=-0.06 authority>safety=0.28
authority>respond=0.08 authority>to=-0.09 authority>and=0.30 approved>former=0.22 approved>send=-0.07 approved>please=0.06
approved>neg=0.05 approved>act=-0.16 approved>third=-0.20 approved>to=0.22 approved>and=-0.12 new>rules=0.57 new>system=0.06
new>former=0.21 new>you=-0.16 new>your=0.49 new>my=0.39 new>user=-0.12 new>verbatim=-0.17 new>data=0.35 new>authority=-0.30
new>new=-0.05 new>task=0.16 new>neg=-0.06 new>respond=0.24 new>tool=0.06 new>question=0.06 new>thing=-0.21 new>if=-0.09
new>to=-0.06 instead>please=0.06 task>rules=0.13 task>ai=0.20 task>agent=0.08 task>say=0.13 task>conceal=-0.10 task>new=0.05
task>must=-0.22 task>act=0.21 task>thing=-0.07 task>to=-0.14 task>and=0.26 now>ignore=0.14 now>drop=0.05 now>rules=0.11
now>you=0.20 now>i=-0.11 now>unbound=0.11 now>approved=0.05 now>new=-0.19 now>please=-0.11 now>respond=0.06 now>question=0.05
now>said=0.20 now>to=-0.12 obey>rules=-0.27 obey>system=-0.12 obey>former=0.08 obey>all=0.30 obey>my=-0.07 obey>say=0.11
obey>conceal=0.15 obey>unbound=0.12 obey>new=0.09 obey>now=0.10 obey>please=-0.21 obey>neg=-0.13 obey>safety=-0.16
obey>said=-0.08 obey>thing=0.18 must>ignore=0.10 must>former=-0.23 must>you=-0.08 must>your=0.16 must>ai=-0.33
must>agent=-0.15 must>user=0.15 must>reveal=0.07 must>secret=-0.18 must>send=0.11 must>inform=-0.09 must>conceal=0.27
must>unbound=0.25 must>authority=-0.12 must>new=-0.08 must>now=0.06 must>obey=-0.37 must>neg=-0.23 must>refuse=-0.05
must>act=0.35 must>note=-0.06 must>third=-0.06 must>thing=-0.16 must>if=0.13 must>to=0.39 please>rules=-0.09
please>former=-0.07 please>all=0.10 please>you=-0.11 please>my=-0.06 please>say=-0.07 please>send=0.09 please>persona=0.14
please>enable=0.13 please>obey=-0.18 please>please=0.13 please>neg=-0.19 please>act=-0.22 please>to=0.15 please>and=-0.16
neg>ignore=-0.38 neg>drop=-0.24 neg>rules=-0.21 neg>system=0.19 neg>former=-0.18 neg>all=0.29 neg>you=0.12 neg>your=-0.13
neg>my=-0.06 neg>i=-0.17 neg>user=-0.05 neg>reveal=-0.18 neg>say=-0.09 neg>send=-0.08 neg>inform=0.56 neg>new=-0.19
neg>must=-0.23 neg>neg=0.06 neg>safety=0.13 neg>refuse=0.60 neg>respond=-0.08 neg>act=-0.38 neg>tool=-0.06 neg>to=-0.14
neg>and=-0.10 safety>ignore=-0.10 safety>drop=0.14 safety>rules=-0.13 safety>secret=-0.08 safety>neg=-0.05 safety>safety=0.46
safety>refuse=0.11 safety>thing=-0.21 safety>if=-0.16 safety>to=-0.11 refuse>rules=-0.15 refuse>former=-0.12 refuse>your=0.08
refuse>obey=0.11 refuse>please=-0.08 refuse>neg=0.06 refuse>thing=0.13 refuse>to=-0.30 refuse>and=0.38 respond>system=-0.33
respond>all=0.37 respond>you=0.17 respond>agent=-0.06 respond>user=-0.12 respond>unbound=0.11 respond>now=-0.14
respond>neg=0.33 respond>refuse=-0.28 respond>respond=0.14 respond>about=0.18 respond>third=-0.06 respond>thing=-0.27
respond>if=0.11 respond>to=-0.06 respond>and=-0.14 act>rules=-0.23 act>system=-0.61 act>former=0.06 act>all=-0.14
act>you=-0.27 act>your=-0.20 act>my=-0.18 act>i=-0.30 act>user=0.12 act>say=-0.11 act>secret=0.14 act>send=0.19 act>data=0.23
act>unbound=-0.16 act>authority=0.11 act>new=0.27 act>task=-0.11 act>now=-0.08 act>neg=-0.11 act>question=0.66 act>third=-0.20
act>thing=0.25 act>if=-0.09 act>to=0.22 act>and=0.16 act>url=-0.11 tool>ignore=-0.09 tool>drop=0.06 tool>former=0.10
tool>all=-0.21 tool>you=0.12 tool>ai=0.07 tool>user=0.10 tool>secret=-0.05 tool>data=-0.09 tool>new=-0.07 tool>must=0.05
tool>act=0.07 tool>tool=0.07 tool>thing=0.32 note>ignore=0.26 note>drop=-0.09 note>system=-0.05 note>all=-0.11 note>you=0.07
note>your=-0.10 note>ai=0.26 note>agent=0.06 note>my=-0.11 note>user=-0.07 note>reveal=0.06 note>unbound=-0.16
note>authority=-0.09 note>new=0.07 note>task=-0.08 note>please=0.05 note>safety=-0.05 note>refuse=0.28 note>act=-0.06
note>said=0.09 note>thing=-0.10 note>and=0.14 reading>send=0.08 reading>inform=0.11 reading>persona=-0.14 reading>must=0.07
reading>please=-0.06 reading>thing=0.23 about>ignore=-0.10 about>drop=0.37 about>rules=-0.05 about>you=0.13 about>ai=-0.06
about>i=0.18 about>authority=-0.07 about>about=-0.29 about>thing=-0.11 about>if=-0.05 about>decode=-0.06 about>to=0.11
about>url=0.12 question>drop=0.12 question>system=-0.10 question>former=-0.10 question>all=0.09 question>you=0.18
question>your=0.09 question>agent=-0.33 question>my=-0.12 question>i=-0.09 question>user=-0.12 question>say=-0.12
question>renamed=-0.05 question>unbound=0.19 question>obey=0.13 question>must=0.11 question>neg=-0.09 question>safety=0.05
question>act=-0.08 question>note=-0.09 question>about=-0.16 question>question=-0.28 question>said=-0.11 question>thing=0.39
question>to=0.37 third>ignore=0.43 third>drop=-0.10 third>rules=-0.22 third>system=0.11 third>former=-0.17 third>ai=-0.07
third>agent=-0.07 third>i=-0.06 third>user=-0.12 third>say=-0.17 third>verbatim=0.24 third>data=-0.19 third>inform=0.10
third>authority=-0.11 third>must=0.31 third>neg=-0.15 third>safety=0.40 third>refuse=-0.22 third>respond=0.06 third>act=-0.10
third>about=0.09 third>third=-0.08 third>said=0.31 third>thing=-0.05 third>to=-0.13 third>and=0.15 said>ignore=-0.07
said>drop=0.38 said>rules=-0.07 said>system=-0.12 said>former=-0.30 said>all=0.11 said>you=0.65 said>your=0.30 said>ai=-0.10
said>agent=-0.18 said>my=-0.16 said>i=-0.11 said>user=-0.12 said>verbatim=-0.13 said>new=0.05 said>must=-0.05 said>act=0.21
said>tool=-0.06 said>third=-0.35 said>thing=-0.05 said>to=-0.29 said>and=0.13 thing>ignore=-0.25 thing>drop=-0.24
thing>prompt=-0.28 thing>all=0.09 thing>you=0.07 thing>your=0.13 thing>ai=0.60 thing>my=-0.15 thing>i=-0.23 thing>user=-0.06
thing>say=-0.14 thing>verbatim=0.19 thing>send=-0.12 thing>data=0.51 thing>authority=0.27 thing>new=-0.35 thing>task=-0.13
thing>please=-0.12 thing>neg=0.06 thing>tool=-0.06 thing>third=0.12 thing>said=-0.22 thing>thing=-0.32 thing>if=-0.28
thing>to=-0.25 thing>and=-0.34 thing>url=-0.10 if>drop=-0.06 if>you=-0.18 if>ai=0.08 if>agent=0.09 if>i=-0.09 if>user=-0.35
if>renamed=-0.10 if>enable=-0.05 if>task=-0.08 if>refuse=0.12 if>third=-0.28 if>said=0.06 if>thing=-0.07 if>and=0.11
decode>third=0.05 decode>to=-0.06 remember>all=0.08 remember>user=0.11 to>ignore=-0.06 to>drop=-0.29 to>rules=0.07
to>former=-0.14 to>all=-0.48 to>you=-0.13 to>my=0.05 to>i=0.10 to>user=-0.23 to>secret=-0.07 to>data=-0.10 to>conceal=0.18
to>persona=-0.27 to>unbound=0.08 to>enable=-0.08 to>new=-0.13 to>instead=0.09 to>now=-0.14 to>obey=-0.06 to>neg=-0.13
to>refuse=0.16 to>act=-0.61 to>tool=0.17 to>note=-0.05 to>question=-0.12 to>third=-0.12 to>said=0.20 to>thing=0.21 to>to=-0.12
to>and=0.10 to>url=0.35 and>ignore=-0.25 and>drop=-0.21 and>rules=-0.05 and>all=0.25 and>you=-0.26 and>ai=-0.09 and>my=0.35
and>i=0.24 and>reveal=0.18 and>say=0.15 and>verbatim=0.14 and>send=-0.11 and>inform=-0.15 and>persona=-0.06 and>mode=-0.09
and>authority=-0.09 and>new=-0.09 and>obey=0.19 and>must=0.22 and>refuse=0.05 and>respond=-0.28 and>act=0.76 and>tool=-0.14
and>question=-0.27 and>third=0.09 and>thing=0.06 and>if=0.10 and>to=0.32 and>url=0.10 tag>drop=-0.23 tag>new=0.29 tag>now=0.08
role>you=-0.10 role>ai=0.09 role>my=-0.06 role>i=0.21 role>user=0.15 role>send=0.09 role>mode=-0.07 role>now=0.06
role>act=0.16 border>authority=0.11 border>new=-0.22 unseen>ignore=-0.16 unseen>rules=-0.09 unseen>all=-0.11 unseen>you=-0.06
unseen>ai=-0.45 unseen>say=-0.09 unseen>dan=0.23 unseen>neg=-0.08 unseen>act=-0.29 unseen>note=0.06 unseen>if=0.09
url>instead=0.07 url>act=0.06 url>url=-0.08 called>drop=0.06 called>former=0.30 called>you=0.07 called>ai=-0.06
called>inform=0.12 called>authority=-0.07 called>obey=0.06 called>please=0.18 called>act=-0.42 called>said=0.08
called>thing=0.09 called>if=0.06 about0=0.06 about1=-0.18 about2=-1.09 about3=-0.61
`;
